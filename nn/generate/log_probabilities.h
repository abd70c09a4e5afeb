// What the model itself thinks of a token that was drawn: log-probabilities, before any option of the sampling.
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/tensor.h"

namespace maki {

struct LogProbability {
  std::int32_t id;
  double value;  ///< natural logarithm
};

struct TokenLogProbabilities {
  LogProbability drawn;
  std::vector<LogProbability> top;  ///< the most probable tokens, the lower id first among equals
};

/// The log-softmax of logits of V elements at `id` and at the `count` largest logits (at most V). Logits of +Inf share
/// all the probability equally; one of −Inf has −Inf. Throws Error unless 0 <= id < V and count >= 0. Requires: the
/// logits define a distribution (BadLogitsError).
TokenLogProbabilities log_probabilities(const Tensor& logits, std::int32_t id, std::int64_t count);

}  // namespace maki
