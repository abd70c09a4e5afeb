#include "train/loop/gradient_tree.h"

#include <utility>

#include "autograd/core/check.h"
#include "autograd/ops.h"

namespace maki {

void GradientTree::add(Tensor gradient) {
  for (Tensor& level : levels_) {
    if (!level) {
      level = std::move(gradient);
      return;
    }
    gradient = maki::add(std::exchange(level, Tensor()), gradient);
  }
  levels_.push_back(std::move(gradient));
}

// Higher levels hold earlier gradients, so they are the left operands.
Tensor GradientTree::take() {
  Tensor sum;
  for (Tensor& level : levels_) {
    if (!level) continue;
    sum = sum ? maki::add(level, sum) : level;
    level = Tensor();
  }
  check(static_cast<bool>(sum), "gradients: at least one must be added before their sum is taken");
  return sum;
}

void GradientTree::clear() {
  for (Tensor& level : levels_) level = Tensor();
}

}  // namespace maki
