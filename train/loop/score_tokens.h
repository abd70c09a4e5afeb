// What a model thinks of the tokens of a text that exists already: a single pass over it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nn/generate/log_probabilities.h"
#include "nn/model.h"

namespace maki {

/// The log-probability of every token but the first, given those before it, and the `count` most probable tokens in its
/// place. Equal to those that generation gives, to rounding. Throws Error for ids outside the vocabulary, and
/// BadLogitsError for a model that has diverged. Requires: the model has no dropout, and reads so many tokens at once.
std::vector<TokenLogProbabilities> score_tokens(const Model& model, std::span<const std::int32_t> ids,
                                                std::int64_t count);

}  // namespace maki
