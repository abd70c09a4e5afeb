// Adds the gradients of micro-batches as a binary tree over their index: ((g0 + g1) + (g2 + g3)) + …. The shape of the
// sum depends on the number of micro-batches alone, so several machines can hold its subtrees and give the same bytes.
#pragma once

#include <vector>

#include "autograd/tensor.h"

namespace maki {

class GradientTree {
 public:
  /// The gradient of the next micro-batch.
  void add(Tensor gradient);
  /// The sum of all since the last call; the tree is empty afterwards. At least one was added.
  Tensor take();
  /// Forgets what was added: a step was abandoned.
  void clear();

 private:
  // levels_[l], where there is one, is the finished sum of 2^l neighbours: the digits of a binary counter.
  std::vector<Tensor> levels_;
};

}  // namespace maki
