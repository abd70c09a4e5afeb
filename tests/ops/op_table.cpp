#include "tests/ops/op_table.h"

#include <algorithm>
#include <array>

namespace maki::tests {

std::int64_t Draw::integer(std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(stream_.below(calls_++, static_cast<std::uint64_t>(high - low + 1)));
}
double Draw::uniform(double low, double high) { return low + (high - low) * stream_.uniform(calls_++); }
double Draw::normal() {
  calls_ += calls_ % 2;  // an even index, so that no two normal numbers are made from the same pair of words
  const double value = stream_.normal(calls_);
  calls_ += 2;
  return value;
}

std::int64_t Draw::extent(std::int64_t max) {
  static constexpr std::array<std::int64_t, 12> kPreferred = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33};
  const std::int64_t preferred = kPreferred[static_cast<std::size_t>(integer(0, kPreferred.size() - 1))];
  return preferred <= max && coin() ? preferred : integer(1, max);
}

Shape Draw::shape(int rank, std::int64_t elements) {
  std::array<std::int64_t, Shape::kMaxRank> extents{};
  std::int64_t left = elements;
  for (int axis = rank - 1; axis >= 0; --axis) {
    std::int64_t& chosen = extents[static_cast<std::size_t>(axis)];
    chosen = extent(std::clamp<std::int64_t>(left, 1, axis == rank - 1 ? 40 : 8));
    left = std::max<std::int64_t>(1, left / chosen);
  }
  return Shape(std::span<const std::int64_t>(extents.data(), static_cast<std::size_t>(rank)));
}

Shape Draw::broadcastable(const Shape& shape) {
  const auto all = shape.extents();
  std::array<std::int64_t, Shape::kMaxRank> kept{};
  const auto dropped = static_cast<std::size_t>(integer(0, shape.rank()));
  for (std::size_t i = dropped; i < all.size(); ++i) kept[i - dropped] = integer(0, 2) == 0 ? 1 : all[i];
  return Shape(std::span<const std::int64_t>(kept.data(), all.size() - dropped));
}

Tensor Draw::normals(const Shape& shape, double mean, double std) {
  Tensor x = empty(shape, DType::float64);
  for (double& value : x.values<double>()) value = mean + std * normal();
  return x;
}
Tensor Draw::uniforms(const Shape& shape, double low, double high) {
  Tensor x = empty(shape, DType::float64);
  for (double& value : x.values<double>()) value = uniform(low, high);
  return x;
}
Tensor Draw::away_from_zero(const Shape& shape, double low, double high) {
  Tensor x = empty(shape, DType::float64);
  for (double& value : x.values<double>()) value = uniform(low, high) * (coin() ? 1 : -1);
  return x;
}
Tensor Draw::integers(const Shape& shape, std::int32_t low, std::int32_t high) {
  Tensor x = empty(shape, DType::int32);
  for (std::int32_t& value : x.values<std::int32_t>()) value = static_cast<std::int32_t>(integer(low, high));
  return x;
}

const std::vector<Row>& op_table() {
  static const std::vector<Row> table = [] {
    std::vector<Row> rows;
    for (const auto& family : {elementwise_rows, linear_rows, layout_rows, norm_rows, loss_rows, attention_rows}) {
      for (Row& row : family()) rows.push_back(std::move(row));
    }
    return rows;
  }();
  return table;
}

}  // namespace maki::tests
