// --logit-bias of `maki generate`.
#pragma once

#include <string>
#include <vector>

#include "data/tokenizer/tokenizer.h"
#include "nn/generate/sampler.h"

namespace maki {

/// Parses entries ID=BIAS or TEXT=BIAS, one per token: a whole number is an id, any other text must be the text of one
/// token (or of the one that ends a text). The last "=" separates the two. If a token is given twice, the last bias
/// holds. Throws Error for an entry without a token of the vocabulary, or whose bias is not a number in [-1e9, 1e9].
std::vector<LogitBias> parse_logit_bias(const std::vector<std::string>& entries, const Tokenizer& tokenizer);

}  // namespace maki
