#include "train/run/config/configured_tokenizer.h"

#include "data/tokenizer/normalized_tokenizer.h"
#include "train/run/config/field_effects.h"

namespace maki {

TokenizerOptions tokenizer_options(const Config& config) {
  return {.vocab_size = config.vocab_size, .normalization = parse_normalization(config.normalize)};
}

void describe_tokenizer(const Tokenizer& tokenizer, Config& config) {
  config.tokenizer = tokenizer.kind();
  if (has_effect(config, "vocab_size")) config.vocab_size = tokenizer.vocab_size();
  config.normalize = to_string(normalization_of(tokenizer));
}

}  // namespace maki
