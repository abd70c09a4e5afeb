// The meta.pkl of nanoGPT's character-level data sets.
#include "data/tokenizer/nanogpt_meta.h"

#include "data/io/error.h"
#include "tests/fuzz/targets.h"
#include "tests/fuzz/vocabularies.h"

namespace maki::fuzz {
namespace {

void read_as_nanogpt_meta(const std::string& bytes) { use_tokenizer(*read_nanogpt_meta(bytes)); }

std::vector<std::string> nanogpt_meta_seeds() {
  return {source_file("tests/fixtures/nanogpt_meta_2.pkl"), source_file("tests/fixtures/nanogpt_meta_4.pkl")};
}

}  // namespace

const Target kNanoGptMeta = {"nanogpt_meta", read_as_nanogpt_meta, is<CorpusError>, nanogpt_meta_seeds};

}  // namespace maki::fuzz
