// How probable a trained model finds each token of a text, given those before it: shows where a text surprises it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nn/generate/log_probabilities.h"
#include "train/run/loaded_model.h"

namespace maki {

/// Throws Error, with the path of the model, unless it predicts each token of a text from those before it: a model of
/// task next_token.
void check_predicts_next(const LoadedModel& loaded);

/// For each of ids[1], ids[2], …: the natural logarithm of its probability after all ids before it, as `drawn`, and the
/// `top` most probable tokens in its place. One entry less than there are ids, because nothing predicts the first.
///
/// All come from one forward pass, without dropout, and are those that generation has after the same ids; they agree to
/// rounding, and have the same bits if Generator::same_bits_stepwise(). Throws what check_predicts_next() throws, Error
/// for no ids, for more than block_size + 1, for an id outside the vocabulary and for a negative `top`, and
/// BadLogitsError if a logit is NaN or +Inf, or all are −Inf.
///
/// Thread safety: may be called on several threads at once.
std::vector<TokenLogProbabilities> score_tokens(const LoadedModel& loaded, std::span<const std::int32_t> ids,
                                                std::int64_t top = 0);

}  // namespace maki
