// softmax and log_softmax over each row, shifted by the row's maximum so that nothing overflows:
//   softmax x = e^(x − max) / Σ e^(x − max),   log softmax x = (x − max) − log Σ e^(x − max).
// T is float or double. No argument is checked; the only exception is Error if MAKI_TARGET is invalid (simd/target.h).
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

/// y = softmax(x) or log softmax(x) over each row; x, y [rows, cols]. A row that contains NaN or +Inf, or nothing but
/// −Inf, becomes NaN throughout.
template <class T>
void softmax_forward(std::int64_t rows, std::int64_t cols, const T* x, T* y);
template <class T>
void log_softmax_forward(std::int64_t rows, std::int64_t cols, const T* x, T* y);

/// For y = softmax(x): dx = y · (dy − Σ dy · y), added if the sink adds. y is forward's output; all are [rows, cols].
template <class T>
void softmax_backward(std::int64_t rows, std::int64_t cols, const T* y, const T* dy, Sink<T> dx);
/// For y = log softmax(x): dx = dy − e^y · Σ dy, likewise.
template <class T>
void log_softmax_backward(std::int64_t rows, std::int64_t cols, const T* y, const T* dy, Sink<T> dx);

}  // namespace maki::kernels
