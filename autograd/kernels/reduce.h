// Sums over any axes: the reduction ops, and the only place where broadcasting is undone for gradients. All sums are in
// double, over blocks of a fixed number of elements whose partial sums are added in index order, so no bit depends on
// the number of threads. A plan merges neighbouring axes that are both kept or both summed, so that kept and summed
// axes alternate. A shape has at most five axes (Shape::kMaxRank), which is what a plan has room for.
// T is float or double. No argument is checked; the only exception is Error if MAKI_TARGET is invalid (simd/target.h).
#pragma once

#include <array>
#include <cstdint>

#include "autograd/core/shape.h"
#include "autograd/core/sink.h"

namespace maki::kernels {

/// Elements of a row that are summed at once, where sums run along the rows: threads can share a long one. The bits of
/// sums depend on it.
inline constexpr std::int64_t kSumSegment = 4096;

/// x seen as [kept, summed, inner], with strides in elements. `inner` is dense; inner_summed says whether it is summed
/// or kept. The other kept axes, and the other summed ones, are at most two each: index i of them is at offset (i /
/// extent[1]) · stride[0] + (i % extent[1]) · stride[1].
struct ReductionPlan {
  struct Axes {
    std::int64_t count = 1;
    std::array<std::int64_t, 2> extent{1, 1}, stride{0, 0};
    std::int64_t offset(std::int64_t i) const { return i / extent[1] * stride[0] + i % extent[1] * stride[1]; }
  };
  Axes kept, summed;
  std::int64_t inner = 1;
  bool inner_summed = false;

  std::int64_t outputs() const { return kept.count * (inner_summed ? 1 : inner); }
};

/// Plans a sum over the axes i of `shape` for which bit i of `axes` is set, of a dense row-major array. The sums are in
/// the order of the kept axes.
ReductionPlan plan_reduction(const Shape& shape, std::uint32_t axes);
/// The axes of `y`, as such a set of bits, along which an input of shape `x` was stretched by broadcasting.
std::uint32_t broadcast_axes(const Shape& x, const Shape& y);

/// Doubles of scratch that sum() needs; 0 if one task computes each sum.
std::int64_t reduction_scratch(const ReductionPlan& plan);
/// sums[k] = scale · Σ x over the summed axes, added if the sink adds. An empty sum is scale · 0.
template <class T>
void sum(const ReductionPlan& plan, const T* x, double scale, double* scratch, Sink<T> sums);

/// sums[r] = Σ_j a[r, j] · b[r, j], added if the sink adds: bit for bit what sum() gives for the products, each rounded
/// to T, along the rows. Threads share the rows, but not a long one. a and b [rows, cols].
template <class T>
void sum_of_products(std::int64_t rows, std::int64_t cols, const T* a, const T* b, Sink<T> sums);

}  // namespace maki::kernels
