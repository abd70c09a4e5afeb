// Softmax, log-softmax and layer normalisation over the last axis. The formulas are in kernels/softmax.h and
// kernels/norm.h.
#include "autograd/kernels/norm.h"

#include "autograd/kernels/softmax.h"
#include "autograd/ops.h"
#include "autograd/ops/common.h"
#include "autograd/tape.h"

namespace maki {

Tensor softmax(const Tensor& x) {
  check_floating("softmax", x);
  check(x.shape().rank() >= 1, "softmax: x must have at least one axis; got a scalar");
  Tensor y = empty_like(x);
  dispatch(x.dtype(),
           [&]<class T>() { kernels::softmax_forward(x.shape().rows(), x.shape().cols(), x.data<T>(), y.data<T>()); });
  return record("softmax", y, {x}, [y](Grads& g) {
    dispatch(y.dtype(), [&]<class T>() {
      if (const Sink<T> dx = g.in<T>(0)) {
        kernels::softmax_backward(y.shape().rows(), y.shape().cols(), y.data<T>(), g.out<T>(), dx);
      }
    });
  });
}

Tensor log_softmax(const Tensor& x) {
  check_floating("log_softmax", x);
  check(x.shape().rank() >= 1, "log_softmax: x must have at least one axis; got a scalar");
  Tensor y = empty_like(x);
  dispatch(x.dtype(), [&]<class T>() {
    kernels::log_softmax_forward(x.shape().rows(), x.shape().cols(), x.data<T>(), y.data<T>());
  });
  return record("log_softmax", y, {x}, [y](Grads& g) {
    dispatch(y.dtype(), [&]<class T>() {
      if (const Sink<T> dx = g.in<T>(0)) {
        kernels::log_softmax_backward(y.shape().rows(), y.shape().cols(), y.data<T>(), g.out<T>(), dx);
      }
    });
  });
}

namespace {

template <class T>
const T* data_or_null(const Tensor& x) {
  return x ? x.data<T>() : nullptr;
}

void check_layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  check_floating("layer_norm", x);
  check(x.shape().rank() >= 1, "layer_norm: x must have at least one axis; got a scalar");
  const Shape vector{x.shape().cols()};
  if (weight) check_same_type("layer_norm", x, weight);
  if (bias) check_same_type("layer_norm", x, bias);
  check(!weight || weight.shape() == vector, "layer_norm: weight must be {}, the last extent of x {}; got {}", vector,
        x.shape(), weight.shape());
  check(!bias || bias.shape() == vector, "layer_norm: bias must be {}, the last extent of x {}; got {}", vector,
        x.shape(), bias.shape());
  check(eps >= 0 && eps <= 1, "layer_norm: eps must be between 0 and 1; got {}", eps);
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  check_layer_norm(x, weight, bias, eps);
  const std::int64_t rows = x.shape().rows(), cols = x.shape().cols();
  Tensor y = empty_like(x), stats = empty({rows, kernels::kLayerNormStats}, x.dtype());
  dispatch(x.dtype(), [&]<class T>() {
    kernels::layer_norm_forward(rows, cols, x.data<T>(), data_or_null<T>(weight), data_or_null<T>(bias), eps,
                                y.data<T>(), stats.data<T>());
  });

  const Tensor* inputs[3] = {&x};
  std::size_t n = 1;
  const int weight_at = weight ? static_cast<int>(n) : -1;
  if (weight) inputs[n++] = &weight;
  const int bias_at = bias ? static_cast<int>(n) : -1;
  if (bias) inputs[n++] = &bias;
  Tensor* const outputs[] = {&y};
  record("layer_norm", outputs, std::span<const Tensor* const>(inputs, n),
         [x, weight, stats, rows, cols, weight_at, bias_at](Grads& g) {
           dispatch(x.dtype(), [&]<class T>() {
             const Sink<T> dx = g.in<T>(0), dweight = weight_at < 0 ? Sink<T>() : g.in<T>(weight_at),
                           dbias = bias_at < 0 ? Sink<T>() : g.in<T>(bias_at);
             Tensor scratch;
             if (dweight || dbias) scratch = empty({kernels::layer_norm_backward_scratch(rows, cols)}, x.dtype());
             kernels::layer_norm_backward(rows, cols, x.data<T>(), data_or_null<T>(weight), stats.data<T>(), g.out<T>(),
                                          dx, dweight, dbias, scratch ? scratch.data<T>() : nullptr);
           });
         });
  return y;
}

}  // namespace maki
