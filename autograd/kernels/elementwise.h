// Functions of one tensor, element by element, and their derivatives. A new one is a word in Unary and a line in each
// of the two lists of elementwise.cpp.
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

enum class Unary : std::uint8_t { exp, log, sqrt, tanh, sigmoid, relu, silu, gelu, gelu_tanh };

/// What a derivative is computed from, and so what an op keeps: its output where that is enough (the next op keeps it
/// as its input anyway), else its input.
constexpr bool keeps_output(Unary f) {
  return f == Unary::exp || f == Unary::sqrt || f == Unary::tanh || f == Unary::sigmoid || f == Unary::relu;
}

/// y = f(x); x, y [n].
template <class T>
void unary_forward(Unary f, std::int64_t n, const T* x, T* y);

/// dx = dy f′; kept: y where keeps_output(f), else x; all [n].
template <class T>
void unary_backward(Unary f, std::int64_t n, const T* kept, const T* dy, Sink<T> dx);

/// y = factor x; x, y [n].
template <class T>
void scale(std::int64_t n, const T* x, T factor, Sink<T> y);

}  // namespace maki::kernels
