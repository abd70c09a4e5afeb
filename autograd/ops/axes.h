// Shapes seen along one axis, for ops that work along an axis or insert one.
#pragma once

#include <algorithm>
#include <array>

#include "autograd/core/shape.h"
#include "autograd/kernels/along_axis.h"

namespace maki {

/// The product of extents [begin, end), 1 if there are none. Requires: 0 <= begin, end <= rank.
inline std::int64_t product(const Shape& shape, int begin, int end) {
  std::int64_t n = 1;
  for (int axis = begin; axis < end; ++axis) n *= shape[axis];
  return n;
}

/// The product of the extents before `axis`, its own extent, and the product of those after it. Requires: 0 <= axis <
/// rank.
inline kernels::AlongAxis along(const Shape& shape, int axis) {
  return {product(shape, 0, axis), shape[axis], product(shape, axis + 1, shape.rank())};
}

/// The shape with an axis inserted before `axis`; 0 <= axis <= rank. Throws Error if the result would have too many
/// axes.
inline Shape with_inserted(const Shape& shape, int axis, std::int64_t extent) {
  std::array<std::int64_t, Shape::kMaxRank + 1> extents{};
  const auto all = shape.extents();
  const auto place = std::copy_n(all.begin(), axis, extents.begin());
  *place = extent;
  std::copy(all.begin() + axis, all.end(), place + 1);
  return Shape(std::span<const std::int64_t>(extents.data(), all.size() + 1));
}

}  // namespace maki
