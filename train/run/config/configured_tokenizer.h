// The tokenizer of a run, as the configuration describes it.
#pragma once

#include "data/tokenizer/tokenizer.h"
#include "train/run/config/config.h"

namespace maki {

/// What a new tokenizer of the kind `config.tokenizer` is like. Throws CorpusError if config.normalize is unknown.
TokenizerOptions tokenizer_options(const Config& config);
/// Sets the fields that describe an existing tokenizer: tokenizer, normalize, and vocab_size if it has
/// an effect.
void describe_tokenizer(const Tokenizer& tokenizer, Config& config);

}  // namespace maki
