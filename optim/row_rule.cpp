#include "optim/row_rule.h"

#include <cmath>

#include "autograd/core/parallel.h"

namespace maki {
namespace {

// The mean of the squares of (scale · x), in float64 and in four sums, which hide the latency of the additions.
template <class T>
double mean_square(const T* x, std::int64_t n, double scale) {
  double sums[4] = {0, 0, 0, 0};
  for (std::int64_t i = 0; i < n; ++i) {
    const double scaled = scale * static_cast<double>(x[i]);
    sums[i % 4] += scaled * scaled;
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) / static_cast<double>(n);
}

template <class T>
void update_row(const T* gradient, std::int64_t cols, const RowStep& step, T* row, T& squares) {
  squares += static_cast<T>(mean_square(gradient, cols, step.grad_scale));
  const double root = std::sqrt(static_cast<double>(squares)) + kRowSquareEps;
  const T rate = static_cast<T>(step.learning_rate * step.grad_scale / root);
  for (std::int64_t j = 0; j < cols; ++j) row[j] -= rate * gradient[j];
}

}  // namespace

std::vector<MomentSpec> row_moments_of(const Parameter& table) {
  return {{.name = kRowSquares, .shape = Shape{table.shape()[0]}, .may_be_negative = false}};
}

void update_rows_of(const RowGradient& gradient, const RowStep& step, Tensor& table, Tensor& squares) {
  const std::int64_t cols = table.shape()[1];
  if (cols == 0) return;
  const std::int32_t* const rows = gradient.rows.data<std::int32_t>();
  dispatch(table.dtype(), [&]<class T>() {
    parallel_for(gradient.rows.numel(), 2 * cols, [&](std::int64_t i) {
      const T* const g = gradient.values.data<T>() + i * cols;
      update_row(g, cols, step, table.data<T>() + rows[i] * cols, squares.data<T>()[rows[i]]);
    });
  });
}

}  // namespace maki
