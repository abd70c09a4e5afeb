// Shape: up to five extents of a dense row-major tensor; the last axis varies fastest in memory. A plain value.
#pragma once

#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <initializer_list>
#include <span>
#include <string>

namespace maki {

class Shape {
 public:
  static constexpr int kMaxRank = 5;  ///< one more than any model needs; kernels and checkpoints have room for as many
  static constexpr std::int64_t kMaxElements = std::int64_t{1} << 58;  ///< sizes in bytes then stay below 2^61

  Shape() = default;  ///< rank 0: a scalar, one element
  Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
  /// Throws Error if there are more than five extents, if one is negative, or if the product of the non-zero extents is
  /// not below kMaxElements.
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const { return rank_; }
  /// Extent of an axis; negative axes count from the end. Throws Error if the axis is out of range.
  std::int64_t operator[](int axis) const { return extents_[static_cast<std::size_t>(normalize(axis))]; }
  std::int64_t numel() const { return numel_; }  ///< number of elements, the product of the extents

  /// The shape seen as a matrix, as most kernels do: cols() is the last extent (1 for a scalar), rows() the product of
  /// all others.
  std::int64_t cols() const { return rank_ == 0 ? 1 : extents_[static_cast<std::size_t>(rank_ - 1)]; }
  std::int64_t rows() const;

  /// Maps an axis in [-rank, rank) to [0, rank). Throws Error if it is out of range.
  int normalize(int axis) const;
  /// A copy with one extent replaced. Throws Error if the axis is out of range or the new shape is not valid.
  Shape with(int axis, std::int64_t extent) const;
  std::span<const std::int64_t> extents() const { return {extents_.data(), static_cast<std::size_t>(rank_)}; }

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  std::int64_t numel_ = 1;
  int rank_ = 0;
};

/// The shape that a and b broadcast to under NumPy's rules: shapes are aligned at the last axis, and an extent of 1 is
/// repeated. Throws Error with the name of the op and both shapes if they are incompatible, and Error if the result is
/// too large for a Shape.
Shape broadcast(const char* op, const Shape& a, const Shape& b);

std::string to_string(const Shape& shape);  ///< "[2, 3]"

}  // namespace maki

/// @cond
template <>
struct fmt::formatter<maki::Shape> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const maki::Shape& shape, Context& context) const {
    return fmt::formatter<std::string>::format(maki::to_string(shape), context);
  }
};
/// @endcond
