// Elementwise binary operations with NumPy broadcasting; the only place that decides how inputs are stretched (select.h
// uses the same plans, reduce.h undoes it for gradients). A plan merges neighbouring axes that can be one axis in both
// inputs, so that equal shapes, a scalar, a row and a column all need at most two loops. T is float or double. No
// argument is checked; the only exception is Error if MAKI_TARGET is invalid (simd/target.h).
#pragma once

#include <array>
#include <cstdint>

#include "autograd/core/shape.h"
#include "autograd/core/sink.h"

namespace maki::kernels {

enum class BinaryOp : std::uint8_t { add, sub, mul, div, negative_mul };  // negative_mul: −(a · b), for div's gradient

/// The merged axes of the output, outermost first, and the strides of both inputs along them, in elements; 0 if the
/// input is stretched along the axis. The output is dense and row-major.
struct BroadcastPlan {
  int rank = 0;
  std::array<std::int64_t, Shape::kMaxRank> extent{}, stride_a{}, stride_b{};
};

/// The two innermost loops of a plan: element (r, c) of a is a[r * row_a + c * col_a], likewise of b. col_a and col_b
/// are 0 or 1.
struct BroadcastRows {
  std::int64_t rows, cols, row_a, col_a, row_b, col_b;
};

/// Plans y = a op b. Requires: the shapes a and b both broadcast to y. The plan has at least one axis.
BroadcastPlan plan_broadcast(const Shape& a, const Shape& b, const Shape& y);

/// y = a op b, or y += a op b if the sink adds. y may be exactly an input that is not stretched; it must not
/// overlap an input in any other way.
template <class T>
void binary(BinaryOp op, const BroadcastPlan& plan, const T* a, const T* b, Sink<T> y);

/// y = a + (b + gate · b), with every operation rounded: a, b and y [rows, cols], gate [rows]. y may be a or b.
template <class T>
void add_gated(std::int64_t rows, std::int64_t cols, const T* a, const T* b, const T* gate, T* y);

}  // namespace maki::kernels
