#include "autograd/core/shape.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "autograd/core/check.h"

namespace maki {

Shape::Shape(std::span<const std::int64_t> extents) {
  check(extents.size() <= kMaxRank, "shape: at most {} dimensions; got {}", kMaxRank, extents.size());
  for (const std::int64_t extent : extents) {
    check(extent >= 0, "shape: extents must not be negative; got {}", extent);
    extents_[static_cast<std::size_t>(rank_++)] = extent;
  }
  // The limit applies to the product of the non-zero extents, so that [0, 2^62, 2^62] is rejected like [1, 2^62, 2^62].
  std::int64_t product = 1;
  for (const std::int64_t extent : extents) {
    if (extent == 0) continue;
    check(!__builtin_mul_overflow(product, extent, &product) && product < kMaxElements,
          "shape: the product of the non-zero extents must be below 2^58; got [{}]", fmt::join(extents, ", "));
  }
  numel_ = std::find(extents.begin(), extents.end(), 0) == extents.end() ? product : 0;
}

std::int64_t Shape::rows() const {
  std::int64_t rows = 1;
  for (int axis = 0; axis + 1 < rank_; ++axis) rows *= extents_[static_cast<std::size_t>(axis)];
  return rows;
}

int Shape::normalize(int axis) const {
  check(axis >= -rank_ && axis < rank_, "shape: axis must be in [{}, {}); got {} for shape {}", -rank_, rank_, axis,
        *this);
  return axis < 0 ? axis + rank_ : axis;
}

Shape Shape::with(int axis, std::int64_t extent) const {
  std::array<std::int64_t, kMaxRank> extents = extents_;
  extents[static_cast<std::size_t>(normalize(axis))] = extent;
  return Shape(std::span<const std::int64_t>(extents.data(), static_cast<std::size_t>(rank_)));
}

bool operator==(const Shape& a, const Shape& b) { return std::ranges::equal(a.extents(), b.extents()); }

Shape broadcast(const char* op, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::array<std::int64_t, Shape::kMaxRank> extents{};
  for (int axis = 1; axis <= rank; ++axis) {
    const std::int64_t m = axis <= a.rank() ? a[-axis] : 1;
    const std::int64_t n = axis <= b.rank() ? b[-axis] : 1;
    check(m == n || m == 1 || n == 1,
          "{}: shapes aligned at the last axis must have extents that are equal or 1; got {} and {}", op, a, b);
    extents[static_cast<std::size_t>(rank - axis)] = m == 1 ? n : m;
  }
  return Shape(std::span<const std::int64_t>(extents.data(), static_cast<std::size_t>(rank)));
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.extents(), ", ")); }

}  // namespace maki
