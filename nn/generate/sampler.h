// Sampling the next token from logits: temperature, then top-k, then top-p, then one random draw.
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/core/philox.h"
#include "autograd/tensor.h"

namespace maki {

struct Sampling {
  double temperature = 0.8;  ///< the logits are divided by it; 0: always choose the largest logit (greedy)
  std::int64_t top_k = 0;    ///< keep exactly the k most likely tokens, lower ids first among equals; 0: keep all
  /// Keep the smallest set of most likely tokens whose probability reaches top_p, in (0, 1] (Holtzman et al. 2020).
  double top_p = 1;
  std::uint64_t seed = 0;
};

/// The logits define no distribution, because one is NaN or all are −Inf: the model has diverged.
class BadLogitsError : public Error {
 public:
  using Error::Error;
};

/// Draws the next token. Thread safety: none; calls share scratch memory.
class Sampler {
 public:
  /// Throws Error if the temperature is negative or not finite, top_k is negative, or top_p is outside (0, 1].
  explicit Sampler(const Sampling& options);

  /// Chooses one of the ids 0 … V − 1 for logits of V elements of any shape. The result depends on the logits, the
  /// options, `sample` and `position` alone, not on earlier calls. Ties are broken in favour of the lower id. Logits of
  /// +Inf share all the probability equally, which is the limit of growing logits. Throws BadLogitsError if a logit is
  /// NaN or all are −Inf, and Error if there are no logits.
  std::int32_t operator()(const Tensor& logits, std::uint64_t sample, std::uint64_t position);

 private:
  void keep_most_likely(std::int64_t n);
  std::int32_t draw(double uniform) const;

  struct Candidate {
    std::int32_t id;
    double weight;  // at first the logit, then the unnormalised probability
  };
  Sampling options_;
  std::vector<Candidate> candidates_;
};

}  // namespace maki
