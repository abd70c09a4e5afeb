// Kernels that move elements: transposition, and copies between rows of different strides (for concat and slice).
// The output is divided among the threads; the only arithmetic is the addition to a sink that adds. The output
// must not overlap the input.
// T is float or double. No argument is checked (the ops do that), and nothing is thrown.
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

/// y[o, b, m, a, i] = x[o, a, m, b, i]: x is [outer, rows, middle, cols, inner], y [outer, cols, middle, rows, inner].
struct Transposition {
  std::int64_t outer = 1, rows = 1, middle = 1, cols = 1, inner = 1;
  Transposition inverse() const { return {outer, cols, middle, rows, inner}; }
};
/// Swaps the axes `rows` and `cols` of x; added to y if the sink adds. Backward is transpose() with shape.inverse().
template <class T>
void transpose(const Transposition& shape, const T* x, Sink<T> y);

/// y[r, c] = x[r, c] for r < rows, c < cols, added if the sink adds. The rows of x are stride_x elements apart, those
/// of y stride_y.
template <class T>
void copy_rows(std::int64_t rows, std::int64_t cols, const T* x, std::int64_t stride_x, Sink<T> y,
               std::int64_t stride_y);

/// y[r, c] = 0 for r < rows, c < cols; the rows of y are stride_y elements apart.
template <class T>
void zero_rows(std::int64_t rows, std::int64_t cols, T* y, std::int64_t stride_y);

}  // namespace maki::kernels
