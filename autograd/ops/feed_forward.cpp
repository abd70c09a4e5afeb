// The feed-forward network of GPT-2, down · gelu(up · x), as one op: the hidden layer, usually four times as wide as x,
// then goes through memory as few times and in as few bytes as possible.
#include <span>

#include "autograd/core/check.h"
#include "autograd/ops.h"
#include "autograd/ops/common.h"
#include "autograd/ops/products.h"
#include "autograd/tape.h"

namespace maki {
namespace {

/// The layers that map x to the hidden layer and the hidden layer to y, of which either bias may be absent.
struct FeedForward {
  Tensor up, up_bias, down, down_bias;
  LinearShape up_shape, down_shape;
};

/// The hidden layer or its gradient, [rows, F]: numbers of type T, or bfloat16 numbers where the products that read
/// them would round them anyway and the product that computes them can. No bit of the result depends on it.
class Hidden {
 public:
  /// Memory for the result of g, which is set to write to it. `read_rounded`: whether the products that read it round.
  template <class T>
  Hidden(kernels::Gemm<T>& g, bool read_rounded)
      : rounded_(g.rounds_operands && read_rounded && g.k <= kernels::kMaxRoundedResultDepth),
        storage_(g.m * g.n * static_cast<std::int64_t>(rounded_ ? sizeof(BFloat16) : sizeof(T))) {
    if (rounded_) {
      g.c_rounded = reinterpret_cast<BFloat16*>(storage_.data());
    } else {
      g.c = reinterpret_cast<T*>(storage_.data());
    }
  }
  template <class T>
  kernels::GemmOperand<T> operand() const {
    if (rounded_) return reinterpret_cast<const BFloat16*>(storage_.data());
    return reinterpret_cast<const T*>(storage_.data());
  }

 private:
  bool rounded_;
  Storage storage_;
};

void check_layer(const char* op, const char* name, std::int64_t in, const Tensor& weight, const Tensor& bias) {
  const Shape& s = weight.shape();
  check(s.rank() == 2 && s.cols() == in, "{}: {} must be [out, {}]; got {}", op, name, in, s);
  check(!bias || bias.shape() == Shape{s[0]}, "{}: the bias of {} must be [{}]; got {}", op, name, s[0], bias.shape());
}

/// Sets the shapes of f, whose tensors are set.
void check_layers(const char* op, const Tensor& x, FeedForward& f) {
  check_same_type(op, x, f.up);
  check_same_type(op, x, f.down);
  if (f.up_bias) check_same_type(op, x, f.up_bias);
  if (f.down_bias) check_same_type(op, x, f.down_bias);
  check(x.shape().rank() >= 1, "{}: x must have at least one axis; got {}", op, x.shape());
  const std::int64_t rows = x.shape().rows(), in = x.shape().cols();
  check_layer(op, "up", in, f.up, f.up_bias);
  const std::int64_t hidden = f.up.shape()[0];
  check_layer(op, "down", hidden, f.down, f.down_bias);
  f.up_shape = {.rows = rows, .in = in, .out = hidden};
  f.down_shape = {.rows = rows, .in = hidden, .out = f.down.shape()[0]};
}

/// Computes the hidden layer and y, and the derivative of the activation if that is wanted.
template <class T>
Hidden forward(const FeedForward& f, const Tensor& x, Gelu form, Tensor& derivative, Tensor& y) {
  const bool recorded = rounds_as_recorded();
  kernels::Gemm<T> up = linear_product(f.up_shape, x.data<T>(), forward_weight<T>(f.up), recorded);
  const kernels::GemmOperand<T> down_weight = forward_weight<T>(f.down);
  Hidden hidden(up, down_weight.int8 == nullptr);
  up.bias = data_or_null<T>(f.up_bias);
  up.activation = form == Gelu::erf ? kernels::GemmActivation::gelu : kernels::GemmActivation::gelu_tanh;
  if (derivative) up.derivative = derivative.data<T>();
  run(up);
  kernels::Gemm<T> down = linear_product(f.down_shape, hidden.operand<T>(), down_weight, recorded);
  down.c = y.data<T>();
  down.bias = data_or_null<T>(f.down_bias);
  run(down);
  return hidden;
}

/// The gradient of the activation's argument, (dy · down) · derivative.
template <class T>
Hidden backward_hidden(const FeedForward& f, const T* dy, const Tensor& derivative) {
  kernels::Gemm<T> g = linear_backward_x_product(f.down_shape, dy, weight_operand<T>(f.down, true));
  Hidden d(g, /*read_rounded=*/true);
  g.factor = derivative.data<T>();
  run(g);
  return d;
}

// The inputs of the op, in this order; the biases only if they exist.
constexpr int kX = 0, kUp = 1, kDown = 2, kUpBias = 3;
int down_bias_index(const FeedForward& f) { return f.up_bias ? 4 : 3; }

template <class T>
void backward(const FeedForward& f, const Tensor& x, const Hidden& hidden, const Tensor& derivative, Grads& grads) {
  const T* const dy = grads.out<T>();
  if (const Sink<T> dw = grads.in<T>(kDown)) linear_backward_weight(f.down_shape, dy, hidden.operand<T>(), dw);
  if (f.down_bias) {
    if (const Sink<T> db = grads.in<T>(down_bias_index(f))) linear_backward_bias(f.down_shape, dy, db);
  }
  const bool bias = f.up_bias && grads.wants(kUpBias);
  if (!bias && !grads.wants(kX) && !grads.wants(kUp)) return;
  const Hidden d = backward_hidden(f, dy, derivative);
  if (const Sink<T> dx = grads.in<T>(kX))
    linear_backward_x(f.up_shape, d.operand<T>(), weight_operand<T>(f.up, true), dx);
  if (const Sink<T> dw = grads.in<T>(kUp)) linear_backward_weight(f.up_shape, d.operand<T>(), x.data<T>(), dw);
  if (bias) linear_backward_bias(f.up_shape, d.operand<T>(), grads.in<T>(kUpBias));
}

}  // namespace

Tensor gelu_feed_forward(const Tensor& x, const Tensor& up, const Tensor& up_bias, const Tensor& down,
                         const Tensor& down_bias, Gelu form) {
  const char* const op = "gelu_feed_forward";
  FeedForward f{.up = up, .up_bias = up_bias, .down = down, .down_bias = down_bias, .up_shape = {}, .down_shape = {}};
  check_layers(op, x, f);
  Tensor y = empty(x.shape().with(-1, f.down_shape.out), x.dtype());
  // gelu'(up · x), which costs almost nothing if it is computed together with the value.
  Tensor derivative = Tape::current() != nullptr ? empty(x.shape().with(-1, f.up_shape.out), x.dtype()) : Tensor();
  const Tensor* inputs[5] = {&x, &up, &down};
  std::size_t count = 3;
  if (up_bias) inputs[count++] = &up_bias;
  if (down_bias) inputs[count++] = &down_bias;
  Tensor* const outputs[] = {&y};
  dispatch(x.dtype(), [&]<class T>() {
    const Hidden hidden = forward<T>(f, x, form, derivative, y);
    record(op, outputs, std::span<const Tensor* const>(inputs, count),
           [f, x, hidden, derivative](Grads& grads) { backward<T>(f, x, hidden, derivative, grads); });
  });
  return y;
}

}  // namespace maki
