// NumPy broadcasting: its one place forward. A plan merges axes that lie alike in both inputs, so that equal shapes,
// a scalar, a row and a column all become at most two loops.
#pragma once

#include <array>
#include <cstdint>

#include "autograd/core/shape.h"
#include "autograd/core/sink.h"

namespace maki::kernels {

enum class Binary : std::uint8_t { add, sub, mul, div, negative_mul };

/// Strides are in elements, 0 where an input is stretched. The output is dense; its last axis is the last here.
struct Broadcast {
  int rank = 0;
  std::array<std::int64_t, Shape::kMaxRank> extent{}, stride_a{}, stride_b{};
};

/// The inner two loops of a plan. A column stride is 0 or 1; y's rows are `cols` apart.
struct BroadcastRows {
  std::int64_t rows, cols, row_a, col_a, row_b, col_b;
};

/// For inputs of shapes a and b that broadcast to (a part of) y's shape. At least one axis comes out.
Broadcast plan_broadcast(const Shape& a, const Shape& b, const Shape& y);

/// y = a ∘ b, laid out by the plan. y may be a or b where that one is not stretched.
template <class T>
void binary(Binary op, const Broadcast& plan, const T* a, const T* b, Sink<T> y);

}  // namespace maki::kernels
