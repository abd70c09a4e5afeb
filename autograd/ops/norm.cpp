// Softmax, log-softmax, layer normalization and RMS normalization over the last axis. The formulas are in
// kernels/softmax.h, kernels/norm.h and kernels/rms_norm.h.
#include "autograd/kernels/norm.h"

#include "autograd/kernels/rms_norm.h"
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

void check_eps(const char* op, double eps) {
  check(eps >= 0 && eps <= 1, "{}: eps must be between 0 and 1; got {}", op, eps);
}

void check_norm(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  check_floating(op, x);
  check(x.shape().rank() >= 1, "{}: x must have at least one axis; got a scalar", op);
  const Shape vector{x.shape().cols()};
  if (weight) check_same_type(op, x, weight);
  if (bias) check_same_type(op, x, bias);
  check(!weight || weight.shape() == vector, "{}: weight must be {}, the last extent of x {}; got {}", op, vector,
        x.shape(), weight.shape());
  check(!bias || bias.shape() == vector, "{}: bias must be {}, the last extent of x {}; got {}", op, vector, x.shape(),
        bias.shape());
  check_eps(op, eps);
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  check_norm("layer_norm", x, weight, bias, eps);
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

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  check_norm("rms_norm", x, weight, {}, eps);
  const std::int64_t rows = x.shape().rows(), cols = x.shape().cols();
  Tensor y = empty_like(x), rrms = empty({rows}, x.dtype());
  dispatch(x.dtype(), [&]<class T>() {
    kernels::rms_norm_forward(rows, cols, x.data<T>(), data_or_null<T>(weight), eps, y.data<T>(), rrms.data<T>());
  });
  auto backward = [x, weight, rrms, rows, cols](Grads& g) {
    dispatch(x.dtype(), [&]<class T>() {
      const Sink<T> dx = g.in<T>(0), dweight = weight ? g.in<T>(1) : Sink<T>();
      Tensor scratch;
      if (dweight) scratch = empty({kernels::rms_norm_backward_scratch(rows, cols)}, x.dtype());
      kernels::rms_norm_backward(rows, cols, x.data<T>(), data_or_null<T>(weight), rrms.data<T>(), g.out<T>(), dx,
                                 dweight, scratch ? scratch.data<T>() : nullptr);
    });
  };
  if (!weight) return record("rms_norm", y, {x}, std::move(backward));
  return record("rms_norm", y, {x, weight}, std::move(backward));
}

Tensor rms_norm_heads(const Tensor& x, const Tensor& weight, std::int64_t heads, double eps) {
  check_same_type("rms_norm_heads", x, weight);
  const std::int64_t normalized = weight.numel();
  check(x.shape().rank() >= 1 && weight.shape().rank() == 1 && normalized <= x.shape().cols(),
        "rms_norm_heads: weight must be [K], with K at most the last extent of x {}; got {}", x.shape(),
        weight.shape());
  check(heads >= 1 && normalized % heads == 0, "rms_norm_heads: {} columns must be a multiple of the heads; got {}",
        normalized, heads);
  check_eps("rms_norm_heads", eps);
  const kernels::NormedHeads shape{x.shape().rows(), x.shape().cols(), heads, normalized / heads};
  Tensor y = empty_like(x), rrms = empty({shape.rows, heads}, x.dtype());
  dispatch(x.dtype(), [&]<class T>() {
    kernels::rms_norm_heads_forward(shape, x.data<T>(), weight.data<T>(), eps, y.data<T>(), rrms.data<T>());
  });
  return record("rms_norm_heads", y, {x, weight}, [x = x.detach(), weight = weight.detach(), rrms, shape](Grads& g) {
    dispatch(x.dtype(), [&]<class T>() {
      const Sink<T> dx = g.in<T>(0), dweight = g.in<T>(1);
      Tensor scratch;
      if (dweight) scratch = empty({kernels::rms_norm_backward_scratch(shape.rows, shape.normalized())}, x.dtype());
      kernels::rms_norm_heads_backward(shape, x.data<T>(), weight.data<T>(), rrms.data<T>(), g.out<T>(), dx, dweight,
                                       scratch ? scratch.data<T>() : nullptr);
    });
  });
}

}  // namespace maki
