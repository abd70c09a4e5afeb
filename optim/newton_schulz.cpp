#include "optim/newton_schulz.h"

#include <cmath>
#include <span>
#include <utility>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "autograd/core/storage.h"
#include "autograd/kernels/gemm/gemm.h"
#include "autograd/kernels/optimizer.h"

namespace maki {
namespace {

constexpr int kSteps = 5;
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
constexpr double kMinFrobeniusNorm = 1e-7;  // by which a matrix of zeros is divided instead of by 0

// What is left of the diagonal of `count` matrices [side, side] ← what is right of it.
template <class T>
void mirror(std::int64_t count, std::int64_t side, T* x) {
  constexpr std::int64_t kTile = 16;  // two tiles stay in the level-1 cache
  const std::int64_t tiles = ceil_div(side, kTile);
  parallel_for(count * tiles, side * kTile / 2, [=](std::int64_t index) {
    T* const matrix = x + index / tiles * side * side;
    const std::int64_t tile = index % tiles, begin = tile * kTile, end = std::min(side, begin + kTile);
    for (std::int64_t across = begin; across < side; across += kTile) {
      for (std::int64_t j = across; j < std::min(side, across + kTile); ++j) {
        for (std::int64_t i = begin; i < std::min(end, j); ++i) matrix[j * side + i] = matrix[i * side + j];
      }
    }
  });
}

// The iteration on one stack, and the memory that it works in: a second X; A and its square; the sums of a norm; and
// scratch of the products.
template <class T>
class Iteration {
 public:
  Iteration(const MatrixStack& s, std::byte* memory, bool one_thread)
      : s_(s),
        one_thread_(one_thread),
        other_(take<T>(memory, s.count * s.elements())),
        a_(take<T>(memory, s.count * s.side() * s.side())),
        square_(take<T>(memory, s.count * s.side() * s.side())),
        sums_(take<double>(memory, kernels::sum_of_squares_scratch(s.elements()))) {
    for (const kernels::Gemm<T>& g : {gram(nullptr), squared(), step(nullptr, nullptr)}) {
      scratch_bytes_ = std::max(scratch_bytes_, kernels::gemm_scratch_bytes(g));
    }
    scratch_ = take<std::byte>(memory, scratch_bytes_);
  }

  std::int64_t bytes() const { return bytes_; }

  T* run(T* x) {
    T* other = other_;
    normalize(x);
    for (int i = 0; i < kSteps; ++i) {
      multiply_symmetric(gram(x));
      multiply_symmetric(squared());
      add_polynomial();
      multiply(step(x, other));
      std::swap(x, other);
    }
    return x;
  }

 private:
  // The next `count` elements of the memory, which may be null: then only bytes() counts.
  template <class E>
  E* take(std::byte* memory, std::int64_t count) {
    std::byte* const begin = memory == nullptr ? nullptr : memory + bytes_;
    bytes_ += ceil_div(count * std::int64_t{sizeof(E)}, 64) * 64;
    return reinterpret_cast<E*>(begin);
  }

  // The product of each pair of matrices, [m, k] and [k, n], of three stacks.
  kernels::Gemm<T> product(kernels::GemmSizes sizes, const T* a, const T* b, T* c) const {
    const auto& [m, n, k] = sizes;
    kernels::Gemm<T> g{.m = m, .n = n, .k = k, .a = a, .lda = k, .b = b, .ldb = n, .c = c, .ldc = n};
    g.one_thread = one_thread_;
    g.recorded = true;  // as accurate on AMX as on the vector units, and faster where the matrices are large
    g.batch = s_.count;
    g.stride_a = m * k;
    g.stride_b = k * n;
    g.stride_c = m * n;
    return g;
  }
  // A ← the smaller of X Xᵀ and Xᵀ X.
  kernels::Gemm<T> gram(const T* x) const {
    kernels::Gemm<T> g = product({s_.side(), s_.side(), std::max(s_.rows, s_.cols)}, x, x, a_);
    g.lda = g.ldb = s_.cols;
    (s_.wide() ? g.b_transposed : g.a_transposed) = true;
    return symmetric(g);
  }
  kernels::Gemm<T> squared() const { return symmetric(product({s_.side(), s_.side(), s_.side()}, a_, a_, square_)); }
  // other ← P X, with the polynomial P where the square was; a tall X is multiplied from the right.
  kernels::Gemm<T> step(const T* x, T* other) const {
    return product({s_.rows, s_.cols, s_.side()}, s_.wide() ? square_ : x, s_.wide() ? x : square_, other);
  }

  // A product whose result is symmetric: half of it need not be computed. Not on AMX, where the halves differ in their
  // last bits.
  static kernels::Gemm<T> symmetric(kernels::Gemm<T> g) {
    g.upper = !kernels::runs_on_amx(g);
    return g;
  }
  void multiply(const kernels::Gemm<T>& g) const {
    kernels::gemm(g, std::span(scratch_, static_cast<std::size_t>(scratch_bytes_)));
  }
  void multiply_symmetric(const kernels::Gemm<T>& g) const {
    multiply(g);
    if (g.upper) mirror(g.batch, g.n, g.c);
  }

  // X ← X / ‖X‖ for every matrix.
  void normalize(T* x) const {
    for (std::int64_t i = 0; i < s_.count; ++i, x += s_.elements()) {
      const double norm = std::sqrt(kernels::sum_of_squares(s_.elements(), x, sums_));
      const T factor = static_cast<T>(1 / std::max(norm, kMinFrobeniusNorm));
      parallel_ranges(s_.elements(), 1, [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t k = begin; k < end; ++k) x[k] *= factor;
      });
    }
  }
  // square ← a I + b A + c A² for every matrix A, given A².
  void add_polynomial() const {
    const std::int64_t side = s_.side();
    parallel_ranges(s_.count * side, side, [side, A = a_, square = square_](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin * side; i < end * side; ++i) {
        square[i] = static_cast<T>(kC) * square[i] + static_cast<T>(kB) * A[i];
      }
      for (std::int64_t row = begin; row < end; ++row) square[row * side + row % side] += static_cast<T>(kA);
    });
  }

  const MatrixStack& s_;
  const bool one_thread_;
  std::int64_t bytes_ = 0, scratch_bytes_ = 0;
  T *other_, *a_, *square_;
  double* sums_;
  std::byte* scratch_;
};

}  // namespace

template <class T>
std::int64_t orthogonalize_bytes(const MatrixStack& s, bool one_thread) {
  return Iteration<T>(s, nullptr, one_thread).bytes();
}

template <class T>
T* orthogonalize(const MatrixStack& s, T* x, std::byte* memory, bool one_thread) {
  return Iteration<T>(s, memory, one_thread).run(x);
}

template std::int64_t orthogonalize_bytes<float>(const MatrixStack&, bool);
template std::int64_t orthogonalize_bytes<double>(const MatrixStack&, bool);
template float* orthogonalize(const MatrixStack&, float*, std::byte*, bool);
template double* orthogonalize(const MatrixStack&, double*, std::byte*, bool);

MatrixStack stack_of(const Shape& shape, std::int64_t matrices) {
  check(shape.rank() == 2 && matrices >= 1 && shape[0] % matrices == 0,
        "muon: stacked matrices must divide the rows of a shape with two axes; got {} of {}", matrices, shape);
  return {.count = matrices, .rows = shape[0] / matrices, .cols = shape[1]};
}

Tensor orthogonalized(const Tensor& x, std::int64_t matrices) {
  const MatrixStack stack = stack_of(x.shape(), matrices);
  Tensor result = x.clone();
  dispatch(x.dtype(), [&]<class T>() {
    const Storage memory(orthogonalize_bytes<T>(stack, /*one_thread=*/false));
    T* const begin = result.data<T>();
    const T* const end = orthogonalize(stack, begin, memory.data(), /*one_thread=*/false);
    if (end != begin) std::copy_n(end, x.numel(), begin);
  });
  return result;
}

}  // namespace maki
