// Broadcasting for elementwise ops. Forward: y = a ∘ b. Backward: the gradient of an input that was broadcast is summed
// over the axes along which it was repeated.
#pragma once

#include "autograd/core/sink.h"
#include "autograd/kernels/broadcast.h"
#include "autograd/tensor.h"

namespace maki {

/// a ∘ b in the shape that both broadcast to; records nothing. Throws Error, naming the op, if types differ or shapes
/// do not broadcast.
Tensor broadcast_binary(const char* name, kernels::BinaryOp op, const Tensor& a, const Tensor& b);

/// The gradient of an op's output: its elements and its shape.
template <class T>
struct OutputGradient {
  const T* data;
  Shape shape;
};

/// Delivers factor · dy as the gradient of an input of shape `to`, summed over the axes along which it was repeated.
/// Here and below, the sink must not be null, and `to` must broadcast to the shape of dy.
template <class T>
void send_broadcast(const OutputGradient<T>& dy, double factor, const Shape& to, Sink<T> sink);
/// Delivers dy ∘ other in the same way. `other` must broadcast to the shape of dy.
template <class T>
void send_broadcast(kernels::BinaryOp op, const OutputGradient<T>& dy, const Tensor& other, const Shape& to,
                    Sink<T> sink);

}  // namespace maki
