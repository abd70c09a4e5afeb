// The orthogonalization of Muon against plain loops.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "autograd/core/parallel.h"
#include "autograd/core/storage.h"
#include "autograd/kernels/simd/target.h"
#include "optim/newton_schulz.h"
#include "tests/catch.h"
#include "tests/kernels/amx_emulator.h"
#include "tests/max_or_nan.h"
#include "tests/tensors.h"
#include "tests/threads.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Matrices as in a textbook.
struct Matrix {
  std::int64_t rows, cols;
  std::vector<double> x;
  Matrix(std::int64_t r, std::int64_t c) : rows(r), cols(c), x(static_cast<std::size_t>(r * c)) {}
  double& operator()(std::int64_t i, std::int64_t j) { return x[static_cast<std::size_t>(i * cols + j)]; }
  double operator()(std::int64_t i, std::int64_t j) const { return x[static_cast<std::size_t>(i * cols + j)]; }
};

Matrix times(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.cols);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < b.cols; ++j) {
      for (std::int64_t k = 0; k < a.cols; ++k) c(i, j) += a(i, k) * b(k, j);
    }
  }
  return c;
}

Matrix transposed(const Matrix& a) {
  Matrix c(a.cols, a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.cols; ++j) c(j, i) = a(i, j);
  }
  return c;
}

// X ← a X + (b A + c A²) X with A = X Xᵀ, also for tall matrices, whose iteration in the library is another.
Matrix reference(Matrix x) {
  double squares = 0;
  for (const double value : x.x) squares += value * value;
  for (double& value : x.x) value /= std::max(std::sqrt(squares), 1e-7);
  for (int step = 0; step < 5; ++step) {
    const Matrix a = times(x, transposed(x)), a2 = times(a, a);
    Matrix p = a;
    for (std::size_t i = 0; i < p.x.size(); ++i) p.x[i] = -4.7750 * a.x[i] + 2.0315 * a2.x[i];
    const Matrix px = times(p, x);
    for (std::size_t i = 0; i < x.x.size(); ++i) x.x[i] = 3.4445 * x.x[i] + px.x[i];
  }
  return x;
}

// The largest difference from the reference, over all stacked matrices.
double error_of(const Tensor& x, std::int64_t matrices) {
  const Tensor y = orthogonalized(x, matrices);
  REQUIRE(y.shape() == x.shape());
  const std::int64_t rows = x.shape()[0] / matrices, cols = x.shape()[1];
  double worst = 0;
  for (std::int64_t m = 0; m < matrices; ++m) {
    Matrix one(rows, cols);
    for (std::int64_t i = 0; i < rows * cols; ++i) one.x[static_cast<std::size_t>(i)] = x.at(m * rows * cols + i);
    const Matrix expected = reference(one);
    for (std::int64_t i = 0; i < rows * cols; ++i) {
      worst = max_or_nan(worst, std::abs(expected.x[static_cast<std::size_t>(i)] - y.at(m * rows * cols + i)));
    }
  }
  return worst;
}

void require_orthogonalized(const Shape& shape, std::int64_t matrices, double size = 1) {
  INFO(matrices << " matrices, " << shape[0] << " × " << shape[1]);
  Tensor wide = random_tensor(shape, 3), narrow = random_tensor(shape, 3, DType::float32);
  for (double& x : wide.values<double>()) x *= size;
  for (float& x : narrow.values<float>()) x *= static_cast<float>(size);
  const double worst = error_of(wide, matrices), worst_narrow = error_of(narrow, matrices);
  REQUIRE(worst < 1e-12);
  REQUIRE(worst_narrow < 2e-4);
}

}  // namespace

TEST_CASE("orthogonalized() follows the iteration in plain loops, on every target") {
  const kernels::AmxForTests amx;
  for (const std::string& target : kernels::available_targets()) {
    kernels::force_target(target);
    INFO(target);
    for (const auto& [rows, cols] :
         {std::pair{1, 1}, {1, 9}, {9, 1}, {4, 4}, {5, 17}, {33, 3}, {70, 96}, {96, 70}, {128, 160}, {160, 128}}) {
      require_orthogonalized({rows, cols}, 1);
      require_orthogonalized({3 * rows, cols}, 3);
    }
    require_orthogonalized({5, 6}, 1, 1e-15);  // below the smallest norm that is divided by
    require_orthogonalized({5, 6}, 1, 1e15);
  }
  kernels::force_target("");
}

TEST_CASE("a thread that orthogonalizes alone has the bits of the team, whether it is in a parallel region or not") {
  const ThreadsScope team(4);
  for (const auto& [rows, cols] : {std::pair{100, 140}, {140, 100}}) {
    const Tensor x = random_tensor({rows, cols}, 3, DType::float32), expected = orthogonalized(x);
    const MatrixStack stack{1, rows, cols};
    const auto alone = [&] {
      Tensor own = x.clone();
      const Storage memory(orthogonalize_bytes<float>(stack, /*one_thread=*/true));
      const float* const result = orthogonalize(stack, own.data<float>(), memory.data(), /*one_thread=*/true);
      return std::equal(result, result + own.numel(), expected.data<float>());
    };
    REQUIRE(alone());
    std::array<bool, 4> equal{};
    parallel_for(4, kMinParallelWork, [&](std::int64_t i) { equal[static_cast<std::size_t>(i)] = alone(); });
    REQUIRE(std::ranges::count(equal, true) == 4);
  }
}

TEST_CASE("orthogonalized() brings singular values close to 1 and keeps what is orthogonal to itself") {
  const Tensor y = orthogonalized(random_tensor({6, 40}, 3));
  for (std::int64_t i = 0; i < 6; ++i) {
    double length = 0;
    for (std::int64_t j = 0; j < 40; ++j) length += y.at(i * 40 + j) * y.at(i * 40 + j);
    REQUIRE(std::sqrt(length) > 0.6);
    REQUIRE(std::sqrt(length) < 1.3);
  }
  const Tensor zero = orthogonalized(zeros({3, 4}, DType::float32));
  for (std::int64_t i = 0; i < 12; ++i) REQUIRE(zero.at(i) == 0);
  REQUIRE_THROWS_WITH(orthogonalized(random_tensor({5, 4}, 3, DType::float32), 2),
                      ContainsSubstring("divide the rows"));
  REQUIRE_THROWS_AS(orthogonalized(random_tensor({4}, 3, DType::float32)), Error);
}
