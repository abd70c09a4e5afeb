// Matrix products. The gradients of C = op(A) op(B) are d op(A) = dC op(B)ᵀ and d op(B) = op(A)ᵀ dC.
#include "autograd/core/check.h"
#include "autograd/kernels/broadcast.h"
#include "autograd/ops.h"
#include "autograd/ops/products.h"
#include "autograd/tape.h"

namespace maki {
namespace {

// The sizes of a matmul: [m, n] = op(A) [m, k] · op(B) [k, n] for each item of the batch. An operand that all items
// share has stride 0.
struct Product {
  std::int64_t batch, m, n, k;
  bool transpose_a, transpose_b;
  std::int64_t stride_a, stride_b;

  std::int64_t lda() const { return transpose_a ? m : k; }
  std::int64_t ldb() const { return transpose_b ? k : n; }
};

// Runs the product g for each item of the batch. If all items share one output, their products are added to it in the
// order of the batch.
template <class T>
void run_items(kernels::Gemm<T> g, std::int64_t batch, bool shared_output, Sink<T> out) {
  g.c = out.data;
  g.beta = out.add ? 1 : 0;
  if (!shared_output) {
    g.batch = batch;
    g.stride_c = g.m * g.n;
    run(g);
    return;
  }
  if (batch == 0 && !out.add) std::fill(out.data, out.data + g.m * g.n, T{0});
  for (std::int64_t item = 0; item < batch; ++item) {
    run(g);
    g.a += g.stride_a;
    g.b += g.stride_b;
    g.beta = 1;
  }
}

template <class T>
void matmul_backward_a(const Product& p, const T* b, const T* dc, Sink<T> da) {
  kernels::Gemm<T> g;
  if (!p.transpose_a) {  // C = A op(B): dA [m, k] = dC [m, n] · op(B)ᵀ [n, k]
    g = {.m = p.m, .n = p.k, .k = p.n, .a = dc, .lda = p.n, .b = b, .ldb = p.ldb(), .b_transposed = !p.transpose_b};
    g.stride_a = p.m * p.n;
    g.stride_b = p.stride_b;
  } else {  // C = Aᵀ op(B), A is [k, m]: dA = op(B) [k, n] · dCᵀ [n, m]
    g = {.m = p.k, .n = p.m, .k = p.n, .a = b, .lda = p.ldb(), .a_transposed = p.transpose_b};
    g.b = dc;
    g.ldb = p.n;
    g.b_transposed = true;
    g.stride_a = p.stride_b;
    g.stride_b = p.m * p.n;
  }
  g.ldc = g.n;
  round_as_recorded(g, true);
  run_items(g, p.batch, p.stride_a == 0, da);
}

template <class T>
void matmul_backward_b(const Product& p, const T* a, const T* dc, Sink<T> db) {
  kernels::Gemm<T> g;
  if (!p.transpose_b) {  // C = op(A) B: dB [k, n] = op(A)ᵀ [k, m] · dC [m, n]
    g = {.m = p.k, .n = p.n, .k = p.m, .a = a, .lda = p.lda(), .a_transposed = !p.transpose_a, .b = dc, .ldb = p.n};
    g.stride_a = p.stride_a;
    g.stride_b = p.m * p.n;
  } else {  // C = op(A) Bᵀ, B is [n, k]: dB = dCᵀ [n, m] · op(A) [m, k]
    g = {.m = p.n, .n = p.k, .k = p.m, .a = dc, .lda = p.n, .a_transposed = true};
    g.b = a;
    g.ldb = p.lda();
    g.b_transposed = p.transpose_a;
    g.stride_a = p.m * p.n;
    g.stride_b = p.stride_a;
  }
  g.ldc = g.n;
  round_as_recorded(g, true);
  run_items(g, p.batch, p.stride_b == 0, db);
}

bool same_batch(const Shape& a, const Shape& b) {
  return std::ranges::equal(a.extents().first(static_cast<std::size_t>(a.rank() - 2)),
                            b.extents().first(static_cast<std::size_t>(b.rank() - 2)));
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  const Shape &sa = a.shape(), &sb = b.shape();
  check(a.dtype() == b.dtype(), "matmul: both operands must have the same type; got {} and {}", to_string(a.dtype()),
        to_string(b.dtype()));
  check(sa.rank() >= 2 && sb.rank() >= 2, "matmul: both operands must have at least two axes; got {} and {}", sa, sb);
  check(sa.rank() == 2 || sb.rank() == 2 || same_batch(sa, sb),
        "matmul: leading axes must be equal, or one operand must have only two axes; got {} and {}", sa, sb);
  const std::int64_t k = sa[transpose_a ? -2 : -1];
  check(sb[transpose_b ? -1 : -2] == k, "matmul: inner extents must be equal; got {}{} and {}{}", sa,
        transpose_a ? " transposed" : "", sb, transpose_b ? " transposed" : "");

  const Shape& batched = sa.rank() >= sb.rank() ? sa : sb;
  Product p{.batch = 1,
            .m = sa[transpose_a ? -1 : -2],
            .n = sb[transpose_b ? -2 : -1],
            .k = k,
            .transpose_a = transpose_a,
            .transpose_b = transpose_b,
            .stride_a = sa.rank() == 2 && sb.rank() > 2 ? 0 : sa[-1] * sa[-2],
            .stride_b = sb.rank() == 2 && sa.rank() > 2 ? 0 : sb[-1] * sb[-2]};
  for (int axis = 0; axis + 2 < batched.rank(); ++axis) p.batch *= batched[axis];
  Tensor y = empty(batched.with(-2, p.m).with(-1, p.n), a.dtype());
  if (p.stride_b == 0 && !transpose_a) {  // B is shared: one product of batch · m rows is faster than many small ones
    p.m *= p.batch;
    p.batch = 1;
    p.stride_b = k * p.n;
  }

  dispatch(a.dtype(), [&]<class T>() {
    kernels::Gemm<T> g{.m = p.m, .n = p.n, .k = p.k, .a = a.data<T>(), .lda = p.lda(), .a_transposed = transpose_a};
    g.b = b.data<T>();
    g.ldb = p.ldb();
    g.b_transposed = transpose_b;
    g.stride_a = p.stride_a;
    g.stride_b = p.stride_b;
    g.ldc = p.n;
    round_as_recorded(g, rounds_as_recorded());
    run_items(g, p.batch, false, Sink<T>{y.data<T>(), false});
  });
  return record("matmul", y, {a, b}, [a, b, p](Grads& grads) {
    dispatch(a.dtype(), [&]<class T>() {
      const T* const dc = grads.out<T>();
      if (const Sink<T> da = grads.in<T>(0)) matmul_backward_a(p, b.data<T>(), dc, da);
      if (const Sink<T> db = grads.in<T>(1)) matmul_backward_b(p, a.data<T>(), dc, db);
    });
  });
}

namespace {

LinearShape checked_linear(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Shape &sx = x.shape(), &sw = weight.shape();
  check(sx.rank() >= 1 && sw.rank() == 2 && sx.cols() == sw.cols(),
        "{}: weight must be [out, in] with in the last extent of x; got x {}, weight {}", op, sx, sw);
  check(!bias || bias.shape() == Shape{sw[0]}, "{}: bias must be [{}]; got {}", op, sw[0], bias.shape());
  check(x.dtype() == weight.dtype() && (!bias || bias.dtype() == x.dtype()),
        "{}: x, weight and bias must have the same type; got {}, {} and {}", op, to_string(x.dtype()),
        to_string(weight.dtype()), bias ? to_string(bias.dtype()) : "no bias");
  return {.rows = sx.rows(), .in = sw.cols(), .out = sw[0]};
}

// y = x · weightᵀ + bias: dx = dy · weight, dweight = dyᵀ · x, dbias = the column sums of dy.
template <class T>
void linear_backward(const LinearShape& s, const Tensor& x, const Tensor& weight, bool has_bias, const T* dy,
                     Grads& grads) {
  if (const Sink<T> dx = grads.in<T>(0)) linear_backward_x(s, dy, weight_operand<T>(weight, true), dx);
  if (const Sink<T> dw = grads.in<T>(1)) linear_backward_weight(s, dy, x.data<T>(), dw);
  if (!has_bias) return;
  if (const Sink<T> db = grads.in<T>(2)) linear_backward_bias(s, dy, db);
}

template <class F>
Tensor record_linear(const char* op, Tensor y, const Tensor& x, const Tensor& weight, const Tensor& bias, F&& closure) {
  if (!bias) return record(op, y, {x, weight}, std::forward<F>(closure));
  return record(op, y, {x, weight, bias}, std::forward<F>(closure));
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const LinearShape s = checked_linear("linear", x, weight, bias);
  Tensor y = empty(x.shape().with(-1, s.out), x.dtype());
  const bool recorded = rounds_as_recorded();
  dispatch(x.dtype(), [&]<class T>() {
    kernels::Gemm<T> g = linear_product(s, x.data<T>(), forward_weight<T>(weight), recorded);
    g.c = y.data<T>();
    g.bias = bias ? bias.data<T>() : nullptr;
    run(g);
  });
  return record_linear("linear", y, x, weight, bias, [x, weight, s, has_bias = static_cast<bool>(bias)](Grads& grads) {
    dispatch(x.dtype(), [&]<class T>() { linear_backward<T>(s, x, weight, has_bias, grads.out<T>(), grads); });
  });
}

Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias, Gelu form) {
  const LinearShape s = checked_linear("linear_gelu", x, weight, bias);
  Tensor y = empty(x.shape().with(-1, s.out), x.dtype());
  // gelu'(x · weightᵀ + bias), which costs almost nothing if it is computed together with the value.
  Tensor derivative = Tape::current() != nullptr ? empty(y.shape(), y.dtype()) : Tensor();
  const bool recorded = rounds_as_recorded();
  dispatch(x.dtype(), [&]<class T>() {
    kernels::Gemm<T> g = linear_product(s, x.data<T>(), forward_weight<T>(weight), recorded);
    g.c = y.data<T>();
    g.bias = bias ? bias.data<T>() : nullptr;
    g.activation = form == Gelu::erf ? kernels::GemmActivation::gelu : kernels::GemmActivation::gelu_tanh;
    if (derivative) g.derivative = derivative.data<T>();
    run(g);
  });
  return record_linear("linear_gelu", y, x, weight, bias,
                       [x, weight, derivative, s, has_bias = static_cast<bool>(bias)](Grads& grads) mutable {
                         dispatch(x.dtype(), [&]<class T>() {
                           // d = dy · gelu'. The derivative is not needed again, so d overwrites it.
                           T* const d = derivative.data<T>();
                           const Shape& shape = derivative.shape();
                           kernels::binary(kernels::BinaryOp::mul, kernels::plan_broadcast(shape, shape, shape),
                                           grads.out<T>(), d, Sink<T>{d, false});
                           linear_backward<T>(s, x, weight, has_bias, d, grads);
                         });
                       });
}

}  // namespace maki
