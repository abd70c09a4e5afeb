#include "train/run/config/configured_tokenizer.h"

namespace maki {

TokenizerOptions tokenizer_options(const Config& config) {
  return {.vocab_size = config.vocab_size, .normalization = parse_normalization(config.normalize)};
}

void describe_tokenizer(const Tokenizer& tokenizer, Config& config) {
  config.tokenizer = tokenizer.kind();
  if (tokenizer_kind(config.tokenizer).has_limit) config.vocab_size = tokenizer.vocab_size();
  config.normalize = to_string(tokenizer.normalization());
}

}  // namespace maki
