// GPT-2's pair of files: vocab.json and merges.txt.
#include <nlohmann/json.hpp>

#include "data/io/error.h"
#include "tests/fuzz/targets.h"
#include "tests/fuzz/vocabularies.h"

namespace maki::fuzz {
namespace {

void read_as_vocabulary(const std::string& bytes) {
  const std::vector<std::string> files = split_input(bytes, 2);
  scratch_file("merges.txt", files[1]);
  use_tokenizer(*read_tokenizer(scratch_file("vocab.json", files[0])));
}

std::vector<std::string> vocabulary_seeds() {
  const BpeVocabulary vocabulary = bpe_vocabulary(*small_bpe());
  nlohmann::json ids;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) ids[vocabulary.tokens[id]] = id;
  std::string merges = "#version: 0.2\n";
  for (const std::string& merge : vocabulary.merges) merges += merge + "\n";
  return {join_input({ids.dump(), merges})};
}

}  // namespace

const Target kVocabulary = {"vocabulary", read_as_vocabulary, is<CorpusError>, vocabulary_seeds};

}  // namespace maki::fuzz
