#include "data/io/error.h"
#include "tests/fuzz/targets.h"
#include "tests/fuzz/vocabularies.h"

namespace maki::fuzz {
namespace {

void read_as_tokenizer_json(const std::string& bytes) { use_tokenizer(*read_tokenizer_json(bytes)); }

std::vector<std::string> tokenizer_json_seeds() {
  return {tokenizer_json(*small_bpe()), tokenizer_json(*small_bpe(Normalization::nfkc)),
          source_file("tests/fixtures/bpe_tokenizer.json")};
}

}  // namespace

const Target kTokenizerJson = {"tokenizer_json", read_as_tokenizer_json, is<CorpusError>, tokenizer_json_seeds};

}  // namespace maki::fuzz
