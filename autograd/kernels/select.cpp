#include "autograd/kernels/select.h"

#include "autograd/core/parallel.h"

namespace maki::kernels {

template <class T>
void clamp_forward(std::int64_t n, const T* x, T low, T high, T* y) {
  parallel_ranges(n, 1, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T raised = x[i] < low ? low : x[i];
      y[i] = raised > high ? high : raised;
    }
  });
}
template void clamp_forward(std::int64_t, const float*, float, float, float*);
template void clamp_forward(std::int64_t, const double*, double, double, double*);

template <class T>
void clamp_backward(std::int64_t n, const T* x, T low, T high, const T* dy, Sink<T> dx) {
  parallel_ranges(n, 1, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) dx.put(i, x[i] < low || x[i] > high ? T{0} : dy[i]);
  });
}
template void clamp_backward(std::int64_t, const float*, float, float, const float*, Sink<float>);
template void clamp_backward(std::int64_t, const double*, double, double, const double*, Sink<double>);

template <class T>
void select(const BroadcastPlan& plan, const std::int32_t* mask, Where selected, const T* x, Others others, Sink<T> y) {
  const auto last = static_cast<std::size_t>(plan.rank - 1);
  const std::int64_t cols = plan.extent[last], step_mask = plan.stride_a[last], step_x = plan.stride_b[last];
  std::int64_t rows = 1;
  for (std::size_t axis = 0; axis < last; ++axis) rows *= plan.extent[axis];
  const bool wanted = selected == Where::nonzero, zero = others == Others::become_zero && !y.add;

  // Processes columns [left, right) of one row, counted over all axes but the last.
  const auto piece = [&](std::int64_t row, std::int64_t left, std::int64_t right) {
    std::int64_t at_mask = 0, at_x = 0, rest = row;
    for (std::size_t axis = last; axis-- > 0; rest /= plan.extent[axis]) {
      at_mask += rest % plan.extent[axis] * plan.stride_a[axis];
      at_x += rest % plan.extent[axis] * plan.stride_b[axis];
    }
    for (std::int64_t i = left; i < right; ++i) {
      if ((mask[at_mask + i * step_mask] != 0) == wanted) {
        y.put(row * cols + i, x[at_x + i * step_x]);
      } else if (zero) {
        y.data[row * cols + i] = 0;
      }
    }
  };
  if (rows == 1) {
    parallel_ranges(cols, 2, [&](std::int64_t left, std::int64_t right) { piece(0, left, right); });
    return;
  }
  parallel_ranges(rows, 2 * cols, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) piece(row, 0, cols);
  });
}
template void select(const BroadcastPlan&, const std::int32_t*, Where, const float*, Others, Sink<float>);
template void select(const BroadcastPlan&, const std::int32_t*, Where, const double*, Others, Sink<double>);

}  // namespace maki::kernels
