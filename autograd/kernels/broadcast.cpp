#include "autograd/kernels/broadcast.h"

#include <algorithm>

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/broadcast.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/simd/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// y (+)= op(a, b) for the rows of r; see BroadcastRows.
template <class T, class F>
HWY_INLINE void combine(const BroadcastRows& r, const T* a, const T* b, Sink<T> y, F op) {
  const hn::ScalableTag<T> d;
  const bool one_a = r.col_a == 0, one_b = r.col_b == 0;
  for (std::int64_t row = 0; row < r.rows; ++row, a += r.row_a, b += r.row_b, y.data += r.cols) {
    const auto first_a = hn::Set(d, *a), first_b = hn::Set(d, *b);
    for_each_vector<T>(r.cols, [=](const auto& at, std::int64_t i) HWY_ATTR {
      put_vector(at, y, i, op(one_a ? first_a : at.Load(a + i), one_b ? first_b : at.Load(b + i)));
    });
  }
}

template <class T>
void combine_rows(BinaryOp op, const BroadcastRows& r, const T* a, const T* b, Sink<T> y) {
  switch (op) {
    case BinaryOp::add:
      return combine(r, a, b, y, [](auto u, auto v) HWY_ATTR { return hn::Add(u, v); });
    case BinaryOp::sub:
      return combine(r, a, b, y, [](auto u, auto v) HWY_ATTR { return hn::Sub(u, v); });
    case BinaryOp::mul:
      return combine(r, a, b, y, [](auto u, auto v) HWY_ATTR { return hn::Mul(u, v); });
    case BinaryOp::div:
      return combine(r, a, b, y, [](auto u, auto v) HWY_ATTR { return hn::Div(u, v); });
    case BinaryOp::negative_mul:
      return combine(r, a, b, y, [](auto u, auto v) HWY_ATTR { return hn::Neg(hn::Mul(u, v)); });
  }
}

template <class T>
void add_gated_rows(std::int64_t rows, std::int64_t cols, const T* a, const T* b, const T* gate, T* y) {
  const hn::ScalableTag<T> d;
  for (std::int64_t row = 0; row < rows; ++row, a += cols, b += cols, y += cols) {
    const auto factor = hn::Set(d, gate[row]);
    for_each_vector<T>(cols, [=](const auto& at, std::int64_t i) HWY_ATTR {
      const auto v = at.Load(b + i);
      at.Store(hn::Add(at.Load(a + i), hn::Add(v, hn::Mul(v, factor))), y + i);
    });
  }
}

MAKI_KERNEL(combine_rows);
MAKI_KERNEL(add_gated_rows);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

MAKI_EXPORT(combine_rows);
MAKI_EXPORT(add_gated_rows);

BroadcastPlan plan_broadcast(const Shape& a, const Shape& b, const Shape& y) {
  BroadcastPlan plan;
  // From the last axis to the first, so the plan is built innermost axis first and reversed at the end. An axis that
  // continues the previous one in both inputs is merged into it.
  std::int64_t size_a = 1, size_b = 1;
  for (int axis = 1; axis <= y.rank(); ++axis) {
    const std::int64_t extent = y[-axis];
    const std::int64_t extent_a = axis <= a.rank() ? a[-axis] : 1, extent_b = axis <= b.rank() ? b[-axis] : 1;
    const std::int64_t stride_a = extent_a == 1 ? 0 : size_a, stride_b = extent_b == 1 ? 0 : size_b;
    size_a *= extent_a;
    size_b *= extent_b;
    if (extent == 1) continue;
    if (plan.rank > 0) {
      const auto last = static_cast<std::size_t>(plan.rank - 1);
      if (stride_a == plan.stride_a[last] * plan.extent[last] && stride_b == plan.stride_b[last] * plan.extent[last]) {
        plan.extent[last] *= extent;
        continue;
      }
    }
    const auto next = static_cast<std::size_t>(plan.rank++);
    plan.extent[next] = extent;
    plan.stride_a[next] = stride_a;
    plan.stride_b[next] = stride_b;
  }
  if (plan.rank == 0) plan.extent[static_cast<std::size_t>(plan.rank++)] = 1;
  for (auto* list : {&plan.extent, &plan.stride_a, &plan.stride_b}) {
    std::reverse(list->begin(), list->begin() + plan.rank);
  }
  return plan;
}

template <class T>
void binary(BinaryOp op, const BroadcastPlan& plan, const T* a, const T* b, Sink<T> y) {
  const auto kernel = MAKI_DISPATCH(combine_rows, T);
  const auto last = static_cast<std::size_t>(plan.rank - 1);
  BroadcastRows inner{1, plan.extent[last], 0, plan.stride_a[last], 0, plan.stride_b[last]};
  std::int64_t rows = 1, outer = 1;
  if (plan.rank > 1) {
    rows = plan.extent[last - 1];
    inner.row_a = plan.stride_a[last - 1];
    inner.row_b = plan.stride_b[last - 1];
  }
  for (int axis = 0; axis + 2 < plan.rank; ++axis) outer *= plan.extent[static_cast<std::size_t>(axis)];
  if (rows * outer * inner.cols == 0) return;

  // Computes rows [begin, end), counted over all axes but the last, and of these the columns [left, right). Requires: a
  // single row or all columns, because the kernel writes its rows of y one directly after the other.
  const auto piece = [&](std::int64_t begin, std::int64_t end, std::int64_t left, std::int64_t right) {
    while (begin < end) {
      const std::int64_t item = begin / rows, row = begin % rows, count = std::min(rows - row, end - begin);
      std::int64_t at_a = row * inner.row_a + left * inner.col_a, at_b = row * inner.row_b + left * inner.col_b;
      std::int64_t rest = item;
      for (int axis = plan.rank - 3; axis >= 0; --axis) {
        const auto i = static_cast<std::size_t>(axis);
        at_a += rest % plan.extent[i] * plan.stride_a[i];
        at_b += rest % plan.extent[i] * plan.stride_b[i];
        rest /= plan.extent[i];
      }
      BroadcastRows part = inner;
      part.rows = count;
      part.cols = right - left;
      kernel(op, part, a + at_a, b + at_b, Sink<T>{y.data + begin * inner.cols + left, y.add});
      begin += count;
    }
  };
  // From this many rows on, which give every thread of most machines a few, the rows are divided among the threads; if
  // there are fewer, longer rows, their columns are. The number changes no bit.
  constexpr std::int64_t kMinRowsToDivide = 64;
  if (rows * outer >= kMinRowsToDivide) {
    parallel_ranges(rows * outer, inner.cols,
                    [&](std::int64_t begin, std::int64_t end) { piece(begin, end, 0, inner.cols); });
    return;
  }
  for (std::int64_t row = 0; row < rows * outer; ++row) {
    parallel_ranges(inner.cols, 1, [&](std::int64_t left, std::int64_t right) { piece(row, row + 1, left, right); });
  }
}
template void binary(BinaryOp, const BroadcastPlan&, const float*, const float*, Sink<float>);
template void binary(BinaryOp, const BroadcastPlan&, const double*, const double*, Sink<double>);

template <class T>
void add_gated(std::int64_t rows, std::int64_t cols, const T* a, const T* b, const T* gate, T* y) {
  const auto kernel = MAKI_DISPATCH(add_gated_rows, T);
  parallel_ranges(rows, 3 * cols, [&](std::int64_t begin, std::int64_t end) {
    kernel(end - begin, cols, a + begin * cols, b + begin * cols, gate + begin, y + begin * cols);
  });
}
template void add_gated(std::int64_t, std::int64_t, const float*, const float*, const float*, float*);
template void add_gated(std::int64_t, std::int64_t, const double*, const double*, const double*, double*);

}  // namespace maki::kernels
#endif
