// Sums the gradients of micro-batches as a binary tree over their index: ((g0 + g1) + (g2 + g3)) + …. The order of the
// additions depends only on the number of micro-batches, so several machines could each compute a subtree and arrive at
// the same bytes.
#pragma once

#include <vector>

#include "autograd/tensor.h"

namespace maki {

class GradientTree {
 public:
  /// Adds the gradient of the next micro-batch. All gradients have the same shape.
  void add(Tensor gradient);
  /// Returns the sum of the gradients added since the last call, and empties the tree. Throws Error if there are none.
  Tensor take();
  /// Discards what was added, as after a step that was abandoned.
  void clear();

 private:
  // levels_[l] is empty or the finished sum of 2^l consecutive gradients, like the digits of a binary counter.
  std::vector<Tensor> levels_;
};

}  // namespace maki
