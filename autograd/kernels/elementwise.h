// Elementwise functions of one tensor and their derivatives. To add one, add an enumerator to UnaryOp and a case to
// each of the two switches in elementwise.cpp (if it is cheap, also to work() there), specify in keeps_output() what
// its derivative is computed from, declare its op in autograd/ops.h and define it in autograd/ops/elementwise.cpp, and
// give the op a row in tests/ops/op_table_elementwise.cpp, which the tests require.
//
// T is float or double. No argument is checked; the only exception is Error if MAKI_TARGET is invalid (simd/target.h).
// Thread safety: the functions may be called from several threads at once.
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

enum class UnaryOp : std::uint8_t {
  exp,
  log,
  sqrt,
  tanh,
  sigmoid,
  relu,
  relu_squared,  ///< max(x, 0)²
  silu,          ///< x · sigmoid(x)
  gelu,          ///< with erf
  gelu_tanh,     ///< its approximation with tanh
  abs,
  elu_plus_one  ///< x + 1 for x > 0, else e^x
};

/// Whether the derivative is computed from the output y = f(x), which an op then saves for backward, instead of the
/// input x. Where the output suffices it costs no memory, because the next op usually saves it as its own input.
constexpr bool keeps_output(UnaryOp f) {
  return f == UnaryOp::exp || f == UnaryOp::sqrt || f == UnaryOp::tanh || f == UnaryOp::sigmoid || f == UnaryOp::relu ||
         f == UnaryOp::elu_plus_one;
}

/// y = f(x); x, y [n]. Here and below, an output may be the same array as an input, but must not overlap it in part. No
/// bit depends on the number of threads.
template <class T>
void unary_forward(UnaryOp f, std::int64_t n, const T* x, T* y);

/// dx = dy · f′, added if the sink adds. `kept` is y if keeps_output(f), else x. All are [n]. The derivative of
/// relu and abs at 0 is 0, and that of relu at NaN is 1.
template <class T>
void unary_backward(UnaryOp f, std::int64_t n, const T* kept, const T* dy, Sink<T> dx);

/// y = factor · x, added if the sink adds; x, y [n].
template <class T>
void scale(std::int64_t n, const T* x, T factor, Sink<T> y);

}  // namespace maki::kernels
