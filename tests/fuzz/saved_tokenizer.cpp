// maki's own tokenizers, as checkpoints and token files contain them.
#include "data/io/error.h"
#include "tests/fuzz/targets.h"
#include "tests/fuzz/vocabularies.h"

namespace maki::fuzz {
namespace {

void read_as_saved_tokenizer(const std::string& bytes) { use_tokenizer(*load_tokenizer(bytes)); }

std::vector<std::string> saved_tokenizer_seeds() {
  std::vector<std::string> saved = {small_bpe(Normalization::nfc)->save()};
  for (const std::string& kind : tokenizer_names())
    saved.push_back(make_tokenizer(kind, "the cat and the 猫 the cat\n", {.vocab_size = 280})->save());
  return saved;
}

}  // namespace

const Target kSavedTokenizer = {"saved_tokenizer", read_as_saved_tokenizer, is<CorpusError>, saved_tokenizer_seeds};

}  // namespace maki::fuzz
