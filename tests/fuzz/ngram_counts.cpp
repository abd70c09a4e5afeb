// Counts of n-grams, as checkpoints of models with a prior contain them.
#include "data/io/error.h"
#include "data/ngram/ngram_trie.h"
#include "tests/fuzz/targets.h"
#include "train/run/container.h"

namespace maki::fuzz {
namespace {

constexpr std::int64_t kVocabSize = 260;  // of the seed

void read_as_ngram_counts(const std::string& bytes) {
  const NgramTrie trie = load_ngram_trie(bytes, kVocabSize);
  if (trie.save() != bytes) throw std::logic_error("counts are not saved as they were loaded");
}

std::vector<std::string> ngram_counts_seeds() {
  const ContainerReader file(std::string(MAKI_SOURCE_DIR) + "/tests/golden/ngrams/checkpoints/step-00000005.maki");
  return {file.read("ngram_counts")};
}

}  // namespace

const Target kNgramCounts = {"ngram_counts", read_as_ngram_counts, is<CorpusError>, ngram_counts_seeds};

}  // namespace maki::fuzz
