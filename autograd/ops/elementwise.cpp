// Arithmetic with broadcasting, functions of one tensor, dropout. The formulas of the derivatives are in
// kernels/elementwise.cpp and kernels/simd/activation-inl.h.
#include "autograd/kernels/elementwise.h"

#include <cmath>

#include "autograd/core/parallel.h"
#include "autograd/kernels/dropout.h"
#include "autograd/kernels/power.h"
#include "autograd/kernels/select.h"
#include "autograd/ops.h"
#include "autograd/ops/broadcast.h"
#include "autograd/ops/common.h"
#include "autograd/tape.h"

namespace maki {

using kernels::BinaryOp;
using kernels::UnaryOp;

Tensor add(const Tensor& a, const Tensor& b) {
  const Tensor y = broadcast_binary("add", BinaryOp::add, a, b);
  const Shape to_a = a.shape(), to_b = b.shape(), shape = y.shape();
  return record("add", y, {a, b}, [to_a, to_b, shape, dtype = a.dtype()](Grads& g) {
    dispatch(dtype, [&]<class T>() {
      const OutputGradient<T> dy{g.out<T>(), shape};
      const auto deliver = [&](int i, const Shape& to) {
        if (to.numel() == shape.numel()) {
          g.pass(i);
        } else if (const Sink<T> sink = g.in<T>(i)) {
          send_broadcast(dy, 1, to, sink);
        }
      };
      deliver(0, to_a);
      deliver(1, to_b);
    });
  });
}

Tensor sub(const Tensor& a, const Tensor& b) {
  const Tensor y = broadcast_binary("sub", BinaryOp::sub, a, b);
  const Shape to_a = a.shape(), to_b = b.shape(), shape = y.shape();
  return record("sub", y, {a, b}, [to_a, to_b, shape, dtype = a.dtype()](Grads& g) {
    dispatch(dtype, [&]<class T>() {
      const OutputGradient<T> dy{g.out<T>(), shape};
      if (to_a.numel() == shape.numel()) {
        g.pass(0);
      } else if (const Sink<T> da = g.in<T>(0)) {
        send_broadcast(dy, 1, to_a, da);
      }
      if (const Sink<T> db = g.in<T>(1)) send_broadcast(dy, -1, to_b, db);
    });
  });
}

// da = dy · b, db = dy · a: each factor is saved only if the other one needs a gradient.
Tensor mul(const Tensor& a, const Tensor& b) {
  const Tensor y = broadcast_binary("mul", BinaryOp::mul, a, b);
  const Tensor for_a = a.requires_grad() ? b.detach() : Tensor(), for_b = b.requires_grad() ? a.detach() : Tensor();
  const Shape to_a = a.shape(), to_b = b.shape(), shape = y.shape();
  return record("mul", y, {a, b}, [for_a, for_b, to_a, to_b, shape, dtype = a.dtype()](Grads& g) {
    dispatch(dtype, [&]<class T>() {
      const OutputGradient<T> dy{g.out<T>(), shape};
      if (const Sink<T> da = g.in<T>(0)) send_broadcast(BinaryOp::mul, dy, for_a, to_a, da);
      if (const Sink<T> db = g.in<T>(1)) send_broadcast(BinaryOp::mul, dy, for_b, to_b, db);
    });
  });
}

// da = dy, db = dy + dy · gate, dgate = Σ dy · b over each row.
Tensor add_gated(const Tensor& a, const Tensor& b, const Tensor& gate) {
  check_same_type("add_gated", a, b);
  check_same_type("add_gated", a, gate);
  const Shape& shape = a.shape();
  check(shape.rank() > 0 && b.shape() == shape && gate.shape() == shape.with(-1, 1),
        "add_gated: a and b must be [… V] and the gate [… 1]; got {}, {} and {}", shape, b.shape(), gate.shape());
  Tensor y = empty(shape, a.dtype());
  dispatch(a.dtype(), [&]<class T>() {
    kernels::add_gated(shape.rows(), shape.cols(), a.data<T>(), b.data<T>(), gate.data<T>(), y.data<T>());
  });
  const Tensor for_gate = gate.requires_grad() ? b.detach() : Tensor();
  return record("add_gated", y, {a, b, gate}, [for_gate, gate = gate.detach(), shape](Grads& g) {
    dispatch(gate.dtype(), [&]<class T>() {
      const OutputGradient<T> dy{g.out<T>(), shape};
      if (const Sink<T> dgate = g.in<T>(2)) send_broadcast(BinaryOp::mul, dy, for_gate, gate.shape(), dgate);
      if (const Sink<T> db = g.in<T>(1)) {
        send_broadcast(BinaryOp::mul, dy, gate, shape, db);
        send_broadcast(dy, 1, shape, Sink<T>{db.data, true});
      }
    });
    g.pass(0);
  });
}

// da = dy / b, db = −dy · a / b² = −(dy / b) · y.
Tensor div(const Tensor& a, const Tensor& b) {
  const Tensor y = broadcast_binary("div", BinaryOp::div, a, b);
  const Tensor quotient = b.requires_grad() ? y : Tensor();
  const Shape to_a = a.shape(), to_b = b.shape(), shape = y.shape();
  return record("div", y, {a, b}, [divisor = b.detach(), quotient, to_a, to_b, shape](Grads& g) {
    dispatch(divisor.dtype(), [&]<class T>() {
      const OutputGradient<T> dy{g.out<T>(), shape};
      if (const Sink<T> da = g.in<T>(0)) send_broadcast(BinaryOp::div, dy, divisor, to_a, da);
      if (const Sink<T> db = g.in<T>(1)) {
        Tensor share = empty(shape, divisor.dtype());  // dy / b
        send_broadcast(BinaryOp::div, dy, divisor, shape, Sink<T>{share.data<T>(), false});
        const OutputGradient<T> dy_over_b{std::as_const(share).data<T>(), shape};
        send_broadcast(BinaryOp::negative_mul, dy_over_b, quotient, to_b, db);
      }
    });
  });
}

namespace {

Tensor scaled(const char* name, const Tensor& x, double factor) {
  check_floating(name, x);
  Tensor y = empty_like(x);
  const std::int64_t n = x.numel();
  dispatch(x.dtype(), [&]<class T>() {
    kernels::scale(n, x.data<T>(), static_cast<T>(factor), Sink<T>{y.data<T>(), false});
  });
  return record(name, y, {x}, [n, factor, dtype = x.dtype()](Grads& g) {
    dispatch(dtype, [&]<class T>() {
      if (const Sink<T> dx = g.in<T>(0)) kernels::scale(n, g.out<T>(), static_cast<T>(factor), dx);
    });
  });
}

Tensor unary(const char* name, UnaryOp f, const Tensor& x) {
  check_floating(name, x);
  Tensor y = empty_like(x);
  dispatch(x.dtype(), [&]<class T>() { kernels::unary_forward(f, x.numel(), x.data<T>(), y.data<T>()); });
  const Tensor kept = kernels::keeps_output(f) ? y : x.detach();
  return record(name, y, {x}, [f, kept](Grads& g) {
    dispatch(kept.dtype(), [&]<class T>() {
      if (const Sink<T> dx = g.in<T>(0)) kernels::unary_backward(f, kept.numel(), kept.data<T>(), g.out<T>(), dx);
    });
  });
}

}  // namespace

Tensor neg(const Tensor& x) { return scaled("neg", x, -1); }
Tensor scale(const Tensor& x, double factor) { return scaled("scale", x, factor); }

// A number becomes a tensor of one element, which is broadcast. Multiplying by 1 / b would not give the bits of a / b.
Tensor operator+(const Tensor& a, double b) { return add(a, full({}, a.dtype(), b)); }
Tensor operator-(const Tensor& a, double b) { return sub(a, full({}, a.dtype(), b)); }
Tensor operator*(const Tensor& a, double b) { return scale(a, b); }
Tensor operator/(const Tensor& a, double b) { return div(a, full({}, a.dtype(), b)); }
Tensor operator+(double a, const Tensor& b) { return add(full({}, b.dtype(), a), b); }
Tensor operator-(double a, const Tensor& b) { return sub(full({}, b.dtype(), a), b); }
Tensor operator*(double a, const Tensor& b) { return scale(b, a); }
Tensor operator/(double a, const Tensor& b) { return div(full({}, b.dtype(), a), b); }
Tensor operator-(const Tensor& x) { return neg(x); }

Tensor exp(const Tensor& x) { return unary("exp", UnaryOp::exp, x); }
Tensor log(const Tensor& x) { return unary("log", UnaryOp::log, x); }
Tensor sqrt(const Tensor& x) { return unary("sqrt", UnaryOp::sqrt, x); }
Tensor tanh(const Tensor& x) { return unary("tanh", UnaryOp::tanh, x); }
Tensor sigmoid(const Tensor& x) { return unary("sigmoid", UnaryOp::sigmoid, x); }
Tensor relu(const Tensor& x) { return unary("relu", UnaryOp::relu, x); }
Tensor relu_squared(const Tensor& x) { return unary("relu_squared", UnaryOp::relu_squared, x); }
Tensor silu(const Tensor& x) { return unary("silu", UnaryOp::silu, x); }
Tensor elu_plus_one(const Tensor& x) { return unary("elu_plus_one", UnaryOp::elu_plus_one, x); }
Tensor gelu(const Tensor& x, Gelu form) {
  return unary("gelu", form == Gelu::erf ? UnaryOp::gelu : UnaryOp::gelu_tanh, x);
}
Tensor abs(const Tensor& x) { return unary("abs", UnaryOp::abs, x); }

Tensor pow(const Tensor& x, double exponent) {
  check_floating("pow", x);
  check(std::isfinite(exponent), "pow: the exponent must be finite; got {}", exponent);
  Tensor y = empty_like(x);
  dispatch(x.dtype(), [&]<class T>() { kernels::power_forward(x.numel(), x.data<T>(), exponent, y.data<T>()); });
  return record("pow", y, {x}, [x = x.detach(), exponent](Grads& g) {
    dispatch(x.dtype(), [&]<class T>() {
      const Sink<T> dx = g.in<T>(0);
      if (dx) kernels::power_backward(x.numel(), x.data<T>(), exponent, g.out<T>(), dx);
    });
  });
}

Tensor clamp(const Tensor& x, double low, double high) {
  check_floating("clamp", x);
  check(low <= high, "clamp: low must not be above high; got {} and {}", low, high);  // false for NaN, too
  Tensor y = empty_like(x);
  dispatch(x.dtype(), [&]<class T>() {
    kernels::clamp_forward(x.numel(), x.data<T>(), static_cast<T>(low), static_cast<T>(high), y.data<T>());
  });
  return record("clamp", y, {x}, [x = x.detach(), low, high](Grads& g) {
    dispatch(x.dtype(), [&]<class T>() {
      const Sink<T> dx = g.in<T>(0);
      const T least = static_cast<T>(low), most = static_cast<T>(high);
      if (dx) kernels::clamp_backward(x.numel(), x.data<T>(), least, most, g.out<T>(), dx);
    });
  });
}

namespace {

// Delivers dy where the mask selects, summed over the axes along which the input of shape `to` was repeated.
template <class T>
void send_selected(kernels::Where selected, const OutputGradient<T>& dy, const Tensor& mask, const Shape& to,
                   Sink<T> sink) {
  const auto select_into = [&](Sink<T> into) {
    const kernels::BroadcastPlan plan = kernels::plan_broadcast(mask.shape(), dy.shape, dy.shape);
    kernels::select(plan, mask.data<std::int32_t>(), selected, dy.data, kernels::Others::become_zero, into);
  };
  if (to.numel() == dy.shape.numel()) {
    select_into(sink);
    return;
  }
  Tensor share = empty(dy.shape, dtype_of<T>());
  select_into(Sink<T>{share.data<T>(), false});
  send_broadcast(OutputGradient<T>{std::as_const(share).data<T>(), dy.shape}, 1, to, sink);
}

}  // namespace

Tensor where(const Tensor& mask, const Tensor& a, const Tensor& b) {
  check_integers("where", "the mask", mask);
  check_same_type("where", a, b);
  Tensor y = empty(broadcast("where", mask.shape(), broadcast("where", a.shape(), b.shape())), a.dtype());
  const Shape to_a = a.shape(), to_b = b.shape(), shape = y.shape();
  using kernels::Where, kernels::Others;
  dispatch(a.dtype(), [&]<class T>() {
    const auto put = [&](Where selected, const Tensor& from, Others others) {
      const kernels::BroadcastPlan plan = kernels::plan_broadcast(mask.shape(), from.shape(), shape);
      const Sink<T> sink{y.data<T>(), false};
      kernels::select(plan, mask.data<std::int32_t>(), selected, from.data<T>(), others, sink);
    };
    put(Where::nonzero, a, Others::stay);
    put(Where::zero, b, Others::stay);
  });
  return record("where", y, {a, b}, [mask, to_a, to_b, shape, dtype = a.dtype()](Grads& g) {
    dispatch(dtype, [&]<class T>() {
      const OutputGradient<T> dy{g.out<T>(), shape};
      if (const Sink<T> da = g.in<T>(0)) send_selected(Where::nonzero, dy, mask, to_a, da);
      if (const Sink<T> db = g.in<T>(1)) send_selected(Where::zero, dy, mask, to_b, db);
    });
  });
}

namespace {

template <class From, class To>
void convert_elements(std::int64_t n, const From* x, Sink<To> y) {
  parallel_ranges(n, 1, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) y.put(i, static_cast<To>(x[i]));
  });
}

}  // namespace

Tensor convert(const Tensor& x, DType dtype) {
  check_floating("convert", x);
  check(dtype != DType::int32, "convert: the type must be float32 or float64; got int32");
  Tensor y = empty(x.shape(), dtype);
  const std::int64_t n = x.numel();
  const auto from_and_to = [from = x.dtype(), dtype](const auto& body) {
    dispatch(from, [&]<class From>() { dispatch(dtype, [&]<class To>() { body.template operator()<From, To>(); }); });
  };
  from_and_to([&]<class From, class To>() { convert_elements(n, x.data<From>(), Sink<To>{y.data<To>(), false}); });
  return record("convert", y, {x}, [n, from_and_to](Grads& g) {
    from_and_to([&]<class From, class To>() {
      if (const Sink<From> dx = g.in<From>(0)) convert_elements(n, g.out<To>(), dx);
    });
  });
}

Tensor dropout(const Tensor& x, double p) {
  check_floating("dropout", x);
  check(p >= 0 && p < 1, "dropout: p must be in [0, 1); got {}", p);
  Tape* const tape = Tape::current();
  if (tape == nullptr || p == 0) return x;
  const RandomStream stream = tape->next_stream(RandomPurpose::dropout);
  Tensor y = empty_like(x);
  const std::int64_t n = x.numel();
  dispatch(x.dtype(), [&]<class T>() { kernels::dropout(n, x.data<T>(), p, stream, Sink<T>{y.data<T>(), false}); });
  return record("dropout", y, {x}, [n, p, stream, dtype = x.dtype()](Grads& g) {
    dispatch(dtype, [&]<class T>() {
      if (const Sink<T> dx = g.in<T>(0)) kernels::dropout(n, g.out<T>(), p, stream, dx);
    });
  });
}

}  // namespace maki
