// softmax and log_softmax over each row, shifted by the row's maximum so that nothing overflows:
//   y = e^(x − max) / Σ e^(x − max),   log y = (x − max) − log Σ e^(x − max).
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

/// x, y [rows, cols]. NaN anywhere in a row, +Inf, or −Inf alone make the whole row NaN.
template <class T>
void softmax_forward(std::int64_t rows, std::int64_t cols, const T* x, T* y);
template <class T>
void log_softmax_forward(std::int64_t rows, std::int64_t cols, const T* x, T* y);

/// dx = y · (dy − Σ dy · y); y is forward's output. All [rows, cols].
template <class T>
void softmax_backward(std::int64_t rows, std::int64_t cols, const T* y, const T* dy, Sink<T> dx);
/// dx = dy − e^y · Σ dy; y is forward's output.
template <class T>
void log_softmax_backward(std::int64_t rows, std::int64_t cols, const T* y, const T* dy, Sink<T> dx);

}  // namespace maki::kernels
