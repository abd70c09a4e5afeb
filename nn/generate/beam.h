// Beam search: the continuations to which a model gives the highest probability, by keeping the best few of each
// length. With a beam of one it is greedy search.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/generate/sampler.h"
#include "nn/model.h"

namespace maki {

struct BeamOptions {
  std::int64_t beam_size = 4;  ///< hypotheses that are continued; 1: greedy search
  std::int64_t n_best = 1;     ///< the most hypotheses that are returned, from 1 to beam_size
  /// α of length_penalty(), at least 0. 0: long hypotheses, whose log-probability is lower, are never preferred.
  double length_penalty = 0.6;
  std::int64_t max_tokens = 256;  ///< at least 1; a hypothesis of as many tokens that has not ended is cut off
  std::int32_t end = 0;           ///< the token at which a hypothesis ends
};

/// ((5 + length) / 6)^α, by which a log-probability is divided: Wu et al. 2016, arXiv:1609.08144, eq. 14.
double length_penalty(std::int64_t length, double alpha);

struct Hypothesis {
  std::vector<std::int32_t> ids;  ///< without the prompt and without the end token
  double log_probability = 0;     ///< of all tokens and, if it ended, of the end token, in nats
  double score = 0;               ///< log_probability / length_penalty(number of those tokens)
  bool ended = false;             ///< false: it was cut off at max_tokens
};

/// Continues the rows of a state, each of which reads prompt [B, t] int32 first: the n_best hypotheses of each row,
/// fewer if no more have a probability above 0, in descending order of score, those that ended before those that were
/// cut off. A row is done when beam_size of its hypotheses have ended with scores that none of those that are continued
/// has at its present length, when no other has a continuation, or at max_tokens. Equal probabilities are ordered by
/// the smaller id, equal scores by ids.
///
/// The result for a row depends neither on the other rows of the batch nor on the number of threads, if the logits of
/// the model do not. The state is left with the rows of an intermediate step. Throws Error for options that are out of
/// range, for a prompt that is not [batch of the state, t >= 1] and if the state has no room for t + max_tokens − 1
/// more tokens, and BadLogitsError if a logit is NaN or the largest is not finite.
std::vector<std::vector<Hypothesis>> beam_search(const Generator& model, State& state, const Tensor& prompt,
                                                 const BeamOptions& options);

}  // namespace maki
