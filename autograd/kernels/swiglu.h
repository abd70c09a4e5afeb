// SwiGLU: y = silu(gate) · up, where gate and up are the two halves of each row. Shazeer 2020, arXiv:2002.05202, eq. 5.
// T is float or double. No argument is checked; the only exception is Error if MAKI_TARGET is invalid (simd/target.h).
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

/// x [rows, 2 cols]: gate‖up; y [rows, cols].
template <class T>
void swiglu_forward(std::int64_t rows, std::int64_t cols, const T* x, T* y);

/// dgate = dy · up · silu′(gate),  dup = dy · silu(gate). x, dx [rows, 2 cols]; dy [rows, cols]. Added if the sink
/// adds.
template <class T>
void swiglu_backward(std::int64_t rows, std::int64_t cols, const T* x, const T* dy, Sink<T> dx);

}  // namespace maki::kernels
