// Shape: up to five extents of a dense row-major tensor. The last one is the fastest.
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
  static constexpr int kMaxRank = 5;
  static constexpr std::int64_t kMaxElements = std::int64_t{1} << 58;  ///< bytes of any type then fit in 62 bits

  Shape() = default;  ///< rank 0: a scalar, one element
  Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
  /// Throws when there are more than five extents, one is negative, or their product reaches kMaxElements.
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const { return rank_; }
  /// Extent of an axis; negative axes count from the end. Throws out of range.
  std::int64_t operator[](int axis) const { return extents_[static_cast<std::size_t>(normalize(axis))]; }
  std::int64_t numel() const { return numel_; }

  /// The view as a matrix that most kernels take: cols is the last extent (1 for a scalar), rows all others together.
  std::int64_t cols() const { return rank_ == 0 ? 1 : extents_[static_cast<std::size_t>(rank_ - 1)]; }
  std::int64_t rows() const;

  /// The axis as a number from 0, or throws with both numbers.
  int normalize(int axis) const;
  /// A copy with one extent replaced.
  Shape with(int axis, std::int64_t extent) const;
  std::span<const std::int64_t> extents() const { return {extents_.data(), static_cast<std::size_t>(rank_)}; }

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  std::int64_t numel_ = 1;
  int rank_ = 0;
};

/// The shape both broadcast to under NumPy's rules (aligned at the last axis; 1 stretches). Throws naming `op` and
/// both.
Shape broadcast(const char* op, const Shape& a, const Shape& b);

std::string to_string(const Shape& shape);  ///< "[2, 3]"

}  // namespace maki

template <>
struct fmt::formatter<maki::Shape> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const maki::Shape& shape, Context& context) const {
    return fmt::formatter<std::string>::format(maki::to_string(shape), context);
  }
};
