#include "optim/clip.h"

#include <algorithm>
#include <cmath>

#include "autograd/core/check.h"
#include "autograd/kernels/optimizer.h"

namespace maki {

static_assert(kNormBlock == kernels::kUpdateBlock);

std::vector<double> squares_of_blocks(const Tensor& flat) {
  std::vector<double> sums(static_cast<std::size_t>(kernels::sum_of_squares_scratch(flat.numel())));
  dispatch(flat.dtype(), [&]<class T>() { kernels::sums_of_squares(flat.numel(), flat.data<T>(), sums.data()); });
  return sums;
}

double norm_of_blocks(std::span<const double> squares) {
  double total = 0;
  for (const double sum : squares) total += sum;
  return std::sqrt(total);
}

double global_norm(const Tensor& flat) {
  const std::int64_t n = flat.numel();
  Tensor scratch = empty(Shape{kernels::sum_of_squares_scratch(n)}, DType::float64);  // from the pool, unlike a vector
  return dispatch(flat.dtype(), [&]<class T>() {
    return std::sqrt(kernels::sum_of_squares(n, flat.data<T>(), scratch.data<double>()));
  });
}

double grad_norm(ParameterStore& store) { return global_norm(store.gradients()); }

double row_grad_norm(const ParameterStore& store) {
  double sum = 0;
  for (const auto& parameter : store.parameters()) {
    const RowGradient gradient = parameter->row_gradient();
    if (gradient) sum += std::pow(global_norm(gradient.values), 2);
  }
  return std::sqrt(sum);
}

double clip_factor(double norm, double max_norm) {
  check(max_norm >= 0, "clip: the maximum norm must not be negative (0: no clipping); got {}", max_norm);
  return max_norm == 0 ? 1 : std::min(1.0, max_norm / (norm + 1e-6));
}

}  // namespace maki
