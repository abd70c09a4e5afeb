// The sum of the gradients of micro-batches, as a binary tree over their index (autograd/core/sum_tree.h).
#pragma once

#include "autograd/core/sum_tree.h"
#include "autograd/tensor.h"

namespace maki {

class GradientTree {
 public:
  /// Discards what was added; the next gradient is that of this micro-batch.
  void begin(std::int64_t micro = 0) { tree_.begin(micro); }
  /// Adds the gradient of the next micro-batch. All gradients have the same shape.
  void add(Tensor gradient);
  /// Returns the sum of the gradients added since begin(), and empties the tree. Throws Error if there are none.
  Tensor take();
  /// The sums of complete subtrees, as far as gradients were added.
  std::vector<SumTree<Tensor>::Root>& roots() { return tree_.roots(); }

 private:
  SumTree<Tensor> tree_;
};

}  // namespace maki
