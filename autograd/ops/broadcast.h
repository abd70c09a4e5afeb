// Broadcasting between ops and kernels: forward y = a ∘ b, and back, where the gradient of a stretched input is the sum
// over the axes it was stretched along.
#pragma once

#include "autograd/core/sink.h"
#include "autograd/kernels/broadcast.h"
#include "autograd/tensor.h"

namespace maki {

/// a ∘ b in the shape both broadcast to, without a gradient.
Tensor broadcast_binary(const char* name, kernels::Binary op, const Tensor& a, const Tensor& b);

/// A gradient as a backward closure sees it: its elements, and the shape of the op's output.
template <class T>
struct OutputGradient {
  const T* data;
  Shape shape;
};

/// The gradient of an input of shape `to` that entered by addition: factor · dy, summed over what was stretched.
template <class T>
void send_broadcast(const OutputGradient<T>& dy, double factor, const Shape& to, Sink<T> sink);
/// The same for dy ∘ other, where `other` broadcasts to dy's shape.
template <class T>
void send_broadcast(kernels::Binary op, const OutputGradient<T>& dy, const Tensor& other, const Shape& to,
                    Sink<T> sink);

}  // namespace maki
