#include "optim/muon.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "autograd/kernels/optimizer.h"
#include "autograd/ops/products.h"

namespace maki {
namespace {

// Jordan et al. 2024: X ← (aI + bA + cA²) X with A = XXᵀ, whose five steps bring singular values near 1.
constexpr int kNewtonSchulzSteps = 5;
constexpr double kNewtonSchulzA = 3.4445, kNewtonSchulzB = -4.7750, kNewtonSchulzC = 2.0315;
constexpr double kMinFrobeniusNorm = 1e-7;  // by which a matrix of zeros is divided instead of by 0

// A momentum below this becomes 0 instead of subnormal; the bounds are those of kernels/optimizer.cpp.
template <class T>
constexpr T kSmallestFirstMoment = static_cast<T>(sizeof(T) == 4 ? 1e-30 : 1e-290);

// `count` matrices [rows, cols], one behind the other.
struct Stack {
  std::int64_t count, rows, cols;

  std::int64_t elements() const { return rows * cols; }
  bool wide() const { return rows <= cols; }
  std::int64_t side() const { return std::min(rows, cols); }
};

// The product of each pair of matrices, [m, k] and [k, n], of three stacks.
template <class T>
kernels::Gemm<T> product(std::int64_t count, kernels::GemmSizes s, const T* a, const T* b, T* c) {
  kernels::Gemm<T> g{.m = s.m, .n = s.n, .k = s.k, .a = a, .lda = s.k, .b = b, .ldb = s.n, .c = c, .ldc = s.n};
  g.recorded = true;  // as accurate on AMX as on the vector units, and faster where the matrices are large
  g.batch = count;
  g.stride_a = s.m * s.k;
  g.stride_b = s.k * s.n;
  g.stride_c = s.m * s.n;
  return g;
}

// The smaller of X Xᵀ and Xᵀ X.
template <class T>
void gram(const Stack& s, const T* x, T* out) {
  const std::int64_t side = s.side();
  kernels::Gemm<T> g = product(s.count, {side, side, std::max(s.rows, s.cols)}, x, x, out);
  g.lda = g.ldb = s.cols;
  (s.wide() ? g.b_transposed : g.a_transposed) = true;
  run(g);
}

// square ← a I + b A + c A² for every matrix A [side, side], given A².
template <class T>
void add_polynomial(const Stack& s, const T* A, T* square) {
  const std::int64_t side = s.side();
  parallel_ranges(s.count * side, side, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * side; i < end * side; ++i) {
      square[i] = static_cast<T>(kNewtonSchulzC) * square[i] + static_cast<T>(kNewtonSchulzB) * A[i];
    }
    for (std::int64_t row = begin; row < end; ++row) square[row * side + row % side] += static_cast<T>(kNewtonSchulzA);
  });
}

// X ← X / ‖X‖ for every matrix.
template <class T>
void normalize(const Stack& s, T* x) {
  Tensor sums = empty(Shape{kernels::sum_of_squares_scratch(s.elements())}, DType::float64);
  for (std::int64_t i = 0; i < s.count; ++i, x += s.elements()) {
    const double norm = std::sqrt(kernels::sum_of_squares(s.elements(), x, sums.data<double>()));
    const T factor = static_cast<T>(1 / std::max(norm, kMinFrobeniusNorm));
    parallel_ranges(s.elements(), 1, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = begin; k < end; ++k) x[k] *= factor;
    });
  }
}

// X ← (a I + b A + c A²) X with A = X Xᵀ, five times; a tall X is multiplied from the right, with A = Xᵀ X. Changes x
// and uses `other`, of the same shape, as memory; returns the one that has the result.
template <class T>
Tensor iterate(const Stack& s, Tensor x, Tensor other) {
  const std::int64_t side = s.side();
  Tensor a = empty(Shape{s.count * side, side}, x.dtype()), square = empty_like(a);
  normalize(s, x.data<T>());
  for (int i = 0; i < kNewtonSchulzSteps; ++i) {
    gram(s, std::as_const(x).data<T>(), a.data<T>());
    const T* const A = std::as_const(a).data<T>();
    run(product(s.count, {side, side, side}, A, A, square.data<T>()));
    add_polynomial(s, A, square.data<T>());
    const T *const X = std::as_const(x).data<T>(), *const P = std::as_const(square).data<T>();
    run(product(s.count, {s.rows, s.cols, side}, s.wide() ? P : X, s.wide() ? X : P, other.data<T>()));
    std::swap(x, other);
  }
  return x;
}

Stack stack_of(const Shape& shape, std::int64_t matrices) {
  check(shape.rank() == 2 && matrices >= 1 && shape[0] % matrices == 0,
        "muon: stacked matrices must divide the rows of a shape with two axes; got {} of {}", matrices, shape);
  return {.count = matrices, .rows = shape[0] / matrices, .cols = shape[1]};
}

// m ← momentum · m + (1 − momentum) · g;   returns momentum · m + (1 − momentum) · g.
template <class T>
Tensor nesterov(double coefficient, double grad_scale, const Tensor& gradient, Tensor& moment) {
  Tensor out = empty_like(gradient);
  const T keep = static_cast<T>(coefficient), add = static_cast<T>((1 - coefficient) * grad_scale);
  const T* const g = gradient.data<T>();
  T *const m = moment.data<T>(), *const u = out.data<T>();
  parallel_ranges(gradient.numel(), 2, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T fresh = add * g[i], mean = keep * m[i] + fresh;
      m[i] = std::abs(mean) < kSmallestFirstMoment<T> ? T{0} : mean;
      u[i] = keep * m[i] + fresh;
    }
  });
  return out;
}

// value ← keep · value − rate · direction.
template <class T>
void apply(double keep_value, double rate, const Tensor& direction, Tensor& value) {
  const T keep = static_cast<T>(keep_value), r = static_cast<T>(rate);
  const T* const d = direction.data<T>();
  T* const v = value.data<T>();
  parallel_ranges(value.numel(), 2, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) v[i] = keep * v[i] - r * d[i];
  });
}

}  // namespace

Tensor orthogonalized(const Tensor& x, std::int64_t matrices) {
  const Stack stack = stack_of(x.shape(), matrices);
  Tensor result;
  dispatch(x.dtype(), [&]<class T>() { result = iterate<T>(stack, x.clone(), empty_like(x)); });
  return result;
}

Muon::Muon(ParameterStore& store, const MuonOptions& options)
    : ParameterOptimizer(store),
      options_(options),
      adam_{.beta1 = options.beta1, .beta2 = options.beta2, .eps = options.eps, .weight_decay = options.weight_decay} {
  const MuonOptions& o = options;
  check(std::isfinite(o.matrix_factor) && o.matrix_factor >= 0,
        "muon: matrix_factor must be finite and not negative; got {}", o.matrix_factor);
  check(o.momentum >= 0 && o.momentum < 1, "muon: momentum must be in [0, 1); got {}", o.momentum);
  check_adam_options("muon", adam_);
}

std::vector<MomentSpec> Muon::moments_of(const Parameter& parameter) const {
  const Shape& shape = parameter.shape();
  if (parameter.matrices() > 0) return {{"momentum", shape}};
  return {{"exp_avg", shape}, {"exp_avg_sq", shape, false}};
}

void Muon::update_parameter(const OptimizerStep& step, ParameterUpdate& p) {
  const std::int64_t matrices = p.parameter.matrices();
  if (matrices == 0) {
    update_adam(adam_, true, p.decay(), step, p.gradient, p.value, p.moment("exp_avg"), p.moment("exp_avg_sq"));
    return;
  }
  if (p.value.numel() == 0) return;
  const Stack stack = stack_of(p.value.shape(), matrices);
  const double rate = options_.matrix_factor * step.learning_rate;
  const double keep = p.decay() ? 1 - rate * options_.weight_decay : 1;
  const double size = std::sqrt(std::max(1.0, static_cast<double>(stack.rows) / static_cast<double>(stack.cols)));
  dispatch(p.value.dtype(), [&]<class T>() {
    Tensor u = nesterov<T>(options_.momentum, step.grad_scale, p.gradient, p.moment("momentum"));
    apply<T>(keep, rate * size, iterate<T>(stack, std::move(u), empty_like(p.value)), p.value);
  });
}

}  // namespace maki
