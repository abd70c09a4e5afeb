// The most probable answers of a model.
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/tensor.h"

namespace maki {

struct Candidate {
  std::int32_t id;
  double probability;
};

/// The `count` most probable (all, if there are fewer) of the first `ids` entries of a row of logits [n, V], most
/// probable first (equal ones in the order of their ids), with the softmax over these `ids` entries alone. Requires: 1
/// <= ids <= V; 0 <= count; 0 <= row < n.
std::vector<Candidate> best_candidates(const Tensor& logits, std::int64_t row, std::int64_t ids, std::int64_t count);

}  // namespace maki
