// Choosing the next token from logits. Order: temperature, then top-k, then top-p, then one draw.
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/core/philox.h"
#include "autograd/tensor.h"

namespace maki {

struct Sampling {
  double temperature = 0.8;  ///< divides the logits; 0: the largest logit (greedy)
  std::int64_t top_k = 0;    ///< keep exactly the k most likely (ties: the lower id); 0: all
  double top_p = 1;  ///< keep the smallest set of the most likely whose probability reaches p (Holtzman et al. 2020)
  std::uint64_t seed = 0;
};

/// Logits that describe no distribution: one is NaN, or all are −Inf. The model that made them has diverged.
class BadLogits : public Error {
 public:
  using Error::Error;
};

class Sampler {
 public:
  /// Throws for a temperature that is negative or not finite, a negative top_k, or top_p outside (0, 1].
  explicit Sampler(const Sampling& options);

  /// One of the ids 0 … V − 1 for logits of V elements: a function of (logits, seed, sample, position). Ties are broken
  /// by the lower id. Logits of +Inf take all the probability, in equal shares: the limit of growing logits. Throws
  /// BadLogits when a logit is NaN or all are −Inf.
  std::int32_t operator()(const Tensor& logits, std::uint64_t sample, std::uint64_t position);

 private:
  void keep_most_likely(std::int64_t n);
  std::int32_t draw(double uniform) const;

  struct Candidate {
    std::int32_t id;
    double weight;  // the logit, then exp of it
  };
  Sampling options_;
  std::vector<Candidate> candidates_;
};

}  // namespace maki
