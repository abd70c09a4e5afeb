#include "train/loop/gradient_tree.h"

#include <utility>

#include "autograd/core/check.h"
#include "autograd/ops.h"

namespace maki {
namespace {

Tensor sum_of(const Tensor& left, const Tensor& right) { return add(left, right); }

}  // namespace

void GradientTree::add(Tensor gradient) { tree_.push(std::move(gradient), sum_of); }

Tensor GradientTree::take() {
  check(!tree_.empty(), "gradients: at least one must be added before their sum is taken");
  Tensor sum = tree_.total(sum_of);
  tree_.begin();
  return sum;
}

}  // namespace maki
