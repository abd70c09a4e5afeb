// Sums over any axes: the reductions, and the one place where broadcasting is undone. All sums run in double, over
// blocks of a fixed number of elements whose partial sums are combined in index order: no bit depends on the threads.
// A plan merges neighbouring axes that share a fate, so that at most five remain and kept and summed ones alternate.
#pragma once

#include <array>
#include <cstdint>

#include "autograd/core/shape.h"
#include "autograd/core/sink.h"

namespace maki::kernels {

/// x as [kept, summed, inner] with strides in elements; `inner` is dense and itself summed or kept. Kept and summed
/// indices run over up to two axes each: index i is at (i / extent[1]) stride[0] + (i % extent[1]) stride[1].
struct Reduction {
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

/// Bit i of `axes` says that axis i of `shape` is summed. The sums stand in the order of the kept axes.
Reduction plan_reduction(const Shape& shape, std::uint32_t axes);
/// The axes of `y` along which an input of shape `x` was stretched to it.
std::uint32_t stretched_axes(const Shape& x, const Shape& y);

/// Doubles of scratch that sum() needs.
std::int64_t reduction_scratch(const Reduction& plan);
/// sums[k] = scale Σ x over the summed axes. A sum of nothing is scale · 0.
template <class T>
void sum(const Reduction& plan, const T* x, double scale, double* scratch, Sink<T> sums);

}  // namespace maki::kernels
