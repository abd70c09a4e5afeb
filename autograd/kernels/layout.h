// Moving elements: transposition, and copies between rows of different strides (concat, slice). Threads share out the
// output; nothing is computed but the addition into a sink.
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

/// y[o, b, m, a, i] = x[o, a, m, b, i]: x is [outer, rows, middle, cols, inner], y [outer, cols, middle, rows, inner].
struct Transposition {
  std::int64_t outer = 1, rows = 1, middle = 1, cols = 1, inner = 1;
  Transposition inverse() const { return {outer, cols, middle, rows, inner}; }
};
template <class T>
void transpose(const Transposition& shape, const T* x, Sink<T> y);

/// y[r, c] = x[r, c] for r < rows, c < cols; rows of x are stride_x apart, those of y stride_y.
template <class T>
void copy_rows(std::int64_t rows, std::int64_t cols, const T* x, std::int64_t stride_x, Sink<T> y,
               std::int64_t stride_y);

/// y[r, c] = 0 likewise.
template <class T>
void zero_rows(std::int64_t rows, std::int64_t cols, T* y, std::int64_t stride_y);

}  // namespace maki::kernels
