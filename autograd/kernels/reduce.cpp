#include "autograd/kernels/reduce.h"

#include <algorithm>

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/reduce.cpp"
#include <hwy/foreach_target.h>

#include "autograd/kernels/simd/row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sum of segments [begin, end) of one output. Rows are cut into segments (the last of a row may be shorter), and
// segments are counted row by row.
template <class T>
double sum_segments(const ReductionPlan& plan, std::int64_t begin, std::int64_t end, const T* x) {
  const std::int64_t in_row = (plan.inner + kSumSegment - 1) / kSumSegment;
  double total = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t at = i % in_row * kSumSegment;
    total += sum_row_in_double(std::min(kSumSegment, plan.inner - at), x + plan.summed.offset(i / in_row) + at);
  }
  return total;
}

// Σ a[i] · b[i] over a row, in the order in which sum_dense() adds a row of products: by segments, and by blocks of
// `step` of them. Only the products of one segment exist at a time.
template <class T>
double sum_product_row(std::int64_t n, std::int64_t step, const T* a, const T* b) {
  HWY_ALIGN T products[kSumSegment];
  double total = 0, block = 0;
  for (std::int64_t at = 0, left = step; at < n; at += kSumSegment) {
    const std::int64_t length = std::min(kSumSegment, n - at);
    for_each_vector<T>(length, [&](const auto& part, std::int64_t i) HWY_ATTR {
      part.Store(hn::Mul(part.Load(a + at + i), part.Load(b + at + i)), products + i);
    });
    block += sum_row_in_double(length, products);
    if (--left > 0) continue;
    total += block;
    block = 0;
    left = step;
  }
  return total + block;
}

// totals[j] = Σ x[row, j] over rows [begin, end) of the summed axes, j < cols.
template <class T>
void sum_rows(const ReductionPlan& plan, std::int64_t begin, std::int64_t end, std::int64_t cols, const T* x,
              double* totals) {
  std::fill(totals, totals + cols, 0.0);
  for (std::int64_t row = begin; row < end; ++row) {
    const T* const from = x + plan.summed.offset(row);
    for_each_vector<double>(cols, [=](const auto& at, std::int64_t j) HWY_ATTR {
      at.Store(hn::Add(at.Load(totals + j), at.LoadAsDouble(from + j)), totals + j);
    });
  }
}

MAKI_KERNEL(sum_segments);
MAKI_KERNEL(sum_product_row);
MAKI_KERNEL(sum_rows);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

MAKI_EXPORT(sum_segments);
MAKI_EXPORT(sum_product_row);
MAKI_EXPORT(sum_rows);

namespace {

// The bits of a sum depend on these.
constexpr std::int64_t kTaskElements = 16384;  // that one task sums: about 5 µs of work, which outweighs its start
constexpr std::int64_t kTaskColumns = 256;     // if rows are added to each other: totals of 2 KiB, in the level-1 cache

// How the sum of an output is cut into tasks: its pieces (segments or rows) in blocks of `step` pieces.
struct Cut {
  std::int64_t pieces, step, blocks;
};
Cut cut(const ReductionPlan& plan) {
  const std::int64_t width =
      std::max<std::int64_t>(1, std::min(plan.inner, plan.inner_summed ? kSumSegment : kTaskColumns));
  const std::int64_t pieces = plan.summed.count * (plan.inner_summed ? ceil_div(plan.inner, kSumSegment) : 1);
  const std::int64_t step = std::max<std::int64_t>(1, kTaskElements / width);
  return {pieces, step, ceil_div(pieces, step)};
}

// sums[k] (+)= scale · Σ_block partial[block, k]
template <class T>
void combine(std::int64_t blocks, std::int64_t outputs, const double* partial, double scale, Sink<T> sums) {
  parallel_ranges(outputs, blocks, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      double total = 0;
      for (std::int64_t block = 0; block < blocks; ++block) total += partial[block * outputs + k];
      sums.put(k, static_cast<T>(total * scale));
    }
  });
}

// Sums over the inner axis, which is dense, and over the summed axes.
template <class T>
void sum_dense(const ReductionPlan& plan, const T* x, double scale, double* partial, Sink<T> sums) {
  const auto kernel = MAKI_DISPATCH(sum_segments, T);
  const Cut c = cut(plan);
  const auto block_sum = [&](std::int64_t k, std::int64_t block) {
    const std::int64_t begin = block * c.step, end = std::min(c.pieces, begin + c.step);
    const T* const from = x + plan.kept.offset(k);
    return kernel(plan, begin, end, from);
  };
  const std::int64_t outputs = plan.kept.count;
  if (c.blocks == 1) {
    parallel_for(outputs, plan.inner * plan.summed.count,
                 [&](std::int64_t k) { sums.put(k, static_cast<T>(block_sum(k, 0) * scale)); });
    return;
  }
  parallel_for(outputs * c.blocks, kTaskElements,
               [&](std::int64_t i) { partial[i] = block_sum(i % outputs, i / outputs); });
  combine(c.blocks, outputs, partial, scale, sums);
}

// Sums over the summed axes alone; the inner axis is kept, so rows are added to each other.
template <class T>
void sum_columns(const ReductionPlan& plan, const T* x, double scale, double* partial, Sink<T> sums) {
  const auto kernel = MAKI_DISPATCH(sum_rows, T);
  const Cut c = cut(plan);
  const std::int64_t tiles = ceil_div(plan.inner, kTaskColumns), outputs = plan.outputs();
  const auto sum_tile = [&](std::int64_t task) {
    const std::int64_t block = task / (plan.kept.count * tiles), place = task % (plan.kept.count * tiles);
    const std::int64_t k = place / tiles, left = place % tiles * kTaskColumns;
    const std::int64_t cols = std::min(kTaskColumns, plan.inner - left);
    const std::int64_t begin = block * c.step, end = std::min(c.pieces, begin + c.step);
    const T* const from = x + plan.kept.offset(k) + left;
    double totals[kTaskColumns];
    double* const into = c.blocks == 1 ? totals : partial + block * outputs + k * plan.inner + left;
    kernel(plan, begin, end, cols, from, into);
    if (c.blocks > 1) return;
    for (std::int64_t j = 0; j < cols; ++j) {
      sums.put(k * plan.inner + left + j, static_cast<T>(totals[j] * scale));
    }
  };
  const std::int64_t work = std::min(c.step, c.pieces) * std::min(plan.inner, kTaskColumns);
  parallel_for(plan.kept.count * tiles * c.blocks, work, sum_tile);
  if (c.blocks != 1) combine(c.blocks, outputs, partial, scale, sums);
}

}  // namespace

ReductionPlan plan_reduction(const Shape& shape, std::uint32_t axes) {
  ReductionPlan plan;
  bool first = true, last_summed = false;
  std::int64_t stride = 1, kept_axes = 0, summed_axes = 0;
  // From the last axis to the first. The first one seen becomes `inner`; neighbours of the same kind are merged.
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    const std::int64_t extent = shape[axis];
    if (extent == 1) continue;
    const bool summed = (axes >> axis & 1) != 0;
    ReductionPlan::Axes& group = summed ? plan.summed : plan.kept;
    std::int64_t& used = summed ? summed_axes : kept_axes;
    if (first) {
      plan.inner_summed = summed;
      plan.inner = extent;
    } else if (summed == last_summed) {
      if (used == 0) {
        plan.inner *= extent;
      } else {
        group.extent[static_cast<std::size_t>(2 - used)] *= extent;
        group.count *= extent;
      }
    } else {
      const auto slot = static_cast<std::size_t>(1 - used++);
      group.extent[slot] = extent;
      group.stride[slot] = stride;
      group.count *= extent;
    }
    first = false;
    last_summed = summed;
    stride *= extent;
  }
  return plan;
}

std::uint32_t broadcast_axes(const Shape& x, const Shape& y) {
  std::uint32_t axes = 0;
  for (int axis = 1; axis <= y.rank(); ++axis) {
    if ((axis > x.rank() || x[-axis] == 1) && y[-axis] != 1) axes |= 1u << (y.rank() - axis);
  }
  return axes;
}

std::int64_t reduction_scratch(const ReductionPlan& plan) {
  const std::int64_t blocks = cut(plan).blocks;
  return blocks > 1 ? blocks * plan.outputs() : 0;
}

template <class T>
void sum(const ReductionPlan& plan, const T* x, double scale, double* scratch, Sink<T> sums) {
  if (plan.inner_summed) {
    sum_dense(plan, x, scale, scratch, sums);
  } else {
    sum_columns(plan, x, scale, scratch, sums);
  }
}
template void sum(const ReductionPlan&, const float*, double, double*, Sink<float>);
template void sum(const ReductionPlan&, const double*, double, double*, Sink<double>);

template <class T>
void sum_of_products(std::int64_t rows, std::int64_t cols, const T* a, const T* b, Sink<T> sums) {
  const auto kernel = MAKI_DISPATCH(sum_product_row, T);
  constexpr std::int64_t kStep = kTaskElements / kSumSegment;  // cut() of a row of several segments
  parallel_for(rows, 2 * cols,
               [&](std::int64_t r) { sums.put(r, static_cast<T>(kernel(cols, kStep, a + r * cols, b + r * cols))); });
}
template void sum_of_products(std::int64_t, std::int64_t, const float*, const float*, Sink<float>);
template void sum_of_products(std::int64_t, std::int64_t, const double*, const double*, Sink<double>);

}  // namespace maki::kernels
#endif
