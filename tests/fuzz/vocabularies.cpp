#include "tests/fuzz/vocabularies.h"

#include <stdexcept>

namespace maki::fuzz {

std::unique_ptr<Tokenizer> small_bpe(Normalization normalization) {
  return make_tokenizer("bpe", "the cat and the other cat, then 猫 and 猫",
                        {.vocab_size = 280, .normalization = normalization});
}

void use_tokenizer(const Tokenizer& tokenizer) {
  const std::string saved = tokenizer.save();
  if (load_tokenizer(saved)->save() != saved) throw std::logic_error("a tokenizer is not loaded as it was saved");
  constexpr std::string_view kText = "the cat <|endoftext|> 猫's  42\n";
  if (!is_byte_level(tokenizer)) return;
  for (const auto& ids : {tokenizer.encode(kText), tokenizer.encode_with_specials(kText)}) {
    if (tokenizer.decode(ids) != kText) throw std::logic_error("a tokenizer does not decode what it encoded");
  }
}

}  // namespace maki::fuzz
