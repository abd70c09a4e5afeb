// layer_norm, softmax and log_softmax against plain long double references, on every SIMD target.
#include "autograd/kernels/norm.h"

#include <limits>

#include "autograd/kernels/softmax.h"
#include "tests/kernels/reference.h"

using namespace maki;
using namespace maki::tests;
using kernels::kLayerNormStats;

namespace {

struct Matrix {
  std::int64_t rows, cols;
  std::int64_t numel() const { return rows * cols; }
};
// Narrow rows, vector widths and their neighbours, more rows than a block, rows longer than a segment.
constexpr Matrix kShapes[] = {{1, 1},   {5, 1},    {3, 2},    {7, 3},   {4, 4},   {33, 5},
                              {2, 15},  {9, 16},   {100, 17}, {6, 31},  {65, 64}, {129, 65},
                              {3, 255}, {40, 256}, {5, 257},  {2, 777}, {1, 5001}};

// --- layer_norm

template <class T>
struct LayerNormInputs {
  Matrix shape;
  double eps;
  std::vector<T> x, weight, bias, dy;
};

template <class T>
LayerNormInputs<T> layer_norm_inputs(const Matrix& shape, double mean) {
  const auto seed = static_cast<std::uint64_t>(shape.rows * 10007 + shape.cols);
  return {shape,
          1e-5,
          random_values<T>(shape.numel(), seed, mean),
          random_values<T>(shape.cols, seed + 1, 1, 0.5),
          random_values<T>(shape.cols, seed + 2),
          random_values<T>(shape.numel(), seed + 3)};
}

template <class T>
struct LayerNormResult {
  std::vector<T> y, dx, dweight, dbias;
  std::vector<T> all() const {
    std::vector<T> joined;
    for (const auto* part : {&y, &dx, &dweight, &dbias}) joined.insert(joined.end(), part->begin(), part->end());
    return joined;
  }
};

template <class T>
LayerNormResult<T> run(const LayerNormInputs<T>& in, bool affine, bool add) {
  const Matrix s = in.shape;
  Output<T> y(s.numel(), false), stats(s.rows * kLayerNormStats, false);
  Output<T> dx(s.numel(), add), dweight(s.cols, add), dbias(s.cols, add);
  Output<T> scratch(kernels::layer_norm_backward_scratch(s.rows, s.cols), false);
  const T* const weight = affine ? in.weight.data() : nullptr;
  kernels::layer_norm_forward(s.rows, s.cols, in.x.data(), weight, affine ? in.bias.data() : nullptr, in.eps, y.data(),
                              stats.data());
  kernels::layer_norm_backward(s.rows, s.cols, in.x.data(), weight, stats.values().data(), in.dy.data(), dx.sink(),
                               dweight.sink(), dbias.sink(), scratch.data());
  scratch.values();
  return {y.values(), dx.values(), dweight.values(), dbias.values()};
}

template <class T>
LayerNormResult<long double> reference(const LayerNormInputs<T>& in, bool affine, long double start) {
  const Matrix s = in.shape;
  const auto n = static_cast<std::size_t>(s.cols), all = static_cast<std::size_t>(s.numel());
  const auto count = static_cast<long double>(s.cols);
  LayerNormResult<long double> r{Reference(all), Reference(all), Reference(n, start), Reference(n, start)};
  for (std::size_t at = 0; at < all; at += n) {
    long double mean = 0, variance = 0, mean_g = 0, mean_gx = 0;
    for (std::size_t j = 0; j < n; ++j) mean += static_cast<long double>(in.x[at + j]) / count;
    for (std::size_t j = 0; j < n; ++j) {
      variance +=
          (static_cast<long double>(in.x[at + j]) - mean) * (static_cast<long double>(in.x[at + j]) - mean) / count;
    }
    const long double rstd = 1 / std::sqrt(variance + static_cast<long double>(in.eps));
    const auto normal = [&](std::size_t j) { return (static_cast<long double>(in.x[at + j]) - mean) * rstd; };
    const auto g = [&](std::size_t j) {
      return static_cast<long double>(in.dy[at + j]) * (affine ? static_cast<long double>(in.weight[j]) : 1);
    };
    for (std::size_t j = 0; j < n; ++j) {
      const auto dy = static_cast<long double>(in.dy[at + j]);
      r.y[at + j] = affine ? normal(j) * static_cast<long double>(in.weight[j]) + static_cast<long double>(in.bias[j])
                           : normal(j);
      r.dweight[j] += dy * normal(j);
      r.dbias[j] += dy;
      mean_g += g(j) / count;
      mean_gx += g(j) * normal(j) / count;
    }
    for (std::size_t j = 0; j < n; ++j) r.dx[at + j] = start + rstd * (g(j) - mean_g - normal(j) * mean_gx);
  }
  return r;
}

template <class T>
void require_layer_norm(const Matrix& shape, double mean, bool affine, bool add) {
  INFO(shape.rows << " rows, " << shape.cols << " columns, mean " << mean << ", affine " << affine << ", add " << add);
  const auto in = layer_norm_inputs<T>(shape, mean);
  const LayerNormResult<T> r = run(in, affine, add);
  const LayerNormResult<long double> expected = reference(in, affine, add ? 2 : 0);
  const double bound = bound_of<T>();
  // With few columns the terms of dx cancel, so its error is relative to the size of the terms.
  const auto scale = static_cast<long double>(std::sqrt(static_cast<double>(shape.numel())));
  REQUIRE(distance(r.y, expected.y, 0.1L * scale) < bound);
  REQUIRE(distance(r.dx, expected.dx, shape.cols < 4 ? 400 * scale : 0.1L * scale) < bound);
  REQUIRE(distance(r.dweight, expected.dweight, 0.1L * scale) < bound);
  REQUIRE(distance(r.dbias, expected.dbias, 0.1L * scale) < bound);
}

// --- softmax

template <class T>
std::vector<T> run_softmax(const Matrix& s, bool log, const std::vector<T>& x) {
  Output<T> y(s.numel(), false);
  (log ? kernels::log_softmax_forward<T> : kernels::softmax_forward<T>)(s.rows, s.cols, x.data(), y.data());
  return y.values();
}
template <class T>
std::vector<T> run_softmax_backward(const Matrix& s, bool log, const std::vector<T>& y, const std::vector<T>& dy,
                                    bool add) {
  Output<T> dx(s.numel(), add);
  (log ? kernels::log_softmax_backward<T> : kernels::softmax_backward<T>)(s.rows, s.cols, y.data(), dy.data(),
                                                                          dx.sink());
  return dx.values();
}

template <class T>
Reference softmax_reference(const Matrix& s, bool log, const std::vector<T>& x) {
  Reference y(x.begin(), x.end());
  for (auto row = y.begin(); row != y.end(); row += s.cols) {
    const long double max = *std::max_element(row, row + s.cols);
    long double sum = 0;
    for (auto value = row; value != row + s.cols; ++value) sum += std::exp(*value - max);
    for (auto value = row; value != row + s.cols; ++value) {
      *value = log ? *value - max - std::log(sum) : std::exp(*value - max) / sum;
    }
  }
  return y;
}
// Computed from the exact outputs.
template <class T>
Reference softmax_backward_reference(const Matrix& s, bool log, const Reference& y, const std::vector<T>& dy,
                                     long double start) {
  Reference dx(y.size());
  const auto n = static_cast<std::size_t>(s.cols);
  for (std::size_t at = 0; at < y.size(); at += n) {
    long double sum = 0;
    for (std::size_t j = at; j < at + n; ++j) sum += static_cast<long double>(dy[j]) * (log ? 1 : y[j]);
    for (std::size_t j = at; j < at + n; ++j) {
      const auto g = static_cast<long double>(dy[j]);
      dx[j] = start + (log ? g - std::exp(y[j]) * sum : y[j] * (g - sum));
    }
  }
  return dx;
}

template <class T>
void require_softmax(const Matrix& shape, bool log, bool add) {
  INFO(shape.rows << " rows, " << shape.cols << " columns, log " << log << ", add " << add);
  const auto seed = static_cast<std::uint64_t>(shape.rows * 10007 + shape.cols);
  const auto x = random_values<T>(shape.numel(), seed, 10, 3), dy = random_values<T>(shape.numel(), seed + 1);
  const auto y = run_softmax(shape, log, x);
  const Reference expected = softmax_reference(shape, log, x);
  REQUIRE(distance(y, expected, 1e-3L) < bound_of<T>());
  const Reference expected_dx = softmax_backward_reference(shape, log, expected, dy, add ? 2 : 0);
  REQUIRE(distance(run_softmax_backward(shape, log, y, dy, add), expected_dx, 0.1L) < bound_of<T>());
}

}  // namespace

TEST_CASE("layer_norm agrees with its formula at every shape, on every target") {
  on_every_target([] {
    for (const Matrix& shape : kShapes) {
      for (const bool affine : {false, true}) {
        require_layer_norm<float>(shape, affine ? 10 : 0, affine, !affine);
        require_layer_norm<double>(shape, affine ? 10 : 0, affine, !affine);
      }
    }
  });
}

TEST_CASE("layer_norm gives each gradient alone the bits that it has with the others, at any number of threads") {
  on_every_target([] {
    const Matrix s{150, 130};
    const auto in = layer_norm_inputs<float>(s, 1);
    const LayerNormResult<float> together = run(in, true, false);
    Output<float> y(s.numel(), false), stats(s.rows * kLayerNormStats, false);
    kernels::layer_norm_forward(s.rows, s.cols, in.x.data(), in.weight.data(), in.bias.data(), in.eps, y.data(),
                                stats.data());
    for (int only = 0; only < 3; ++only) {
      Output<float> out(only == 0 ? s.numel() : s.cols, false);
      Output<float> scratch(kernels::layer_norm_backward_scratch(s.rows, s.cols), false);
      const auto sink = [&](int i) { return i == only ? out.sink() : Sink<float>(); };
      kernels::layer_norm_backward(s.rows, s.cols, in.x.data(), in.weight.data(), stats.values().data(), in.dy.data(),
                                   sink(0), sink(1), sink(2), only == 0 ? nullptr : scratch.data());
      REQUIRE(same_bits(out.values(), only == 0 ? together.dx : only == 1 ? together.dweight : together.dbias));
    }
    require_same_with_any_threads([&] { return run(in, true, false).all(); });
    require_same_with_any_threads([&] { return run(layer_norm_inputs<double>({700, 7}, 0), true, true).all(); });
  });
}

TEST_CASE("layer_norm keeps the digits of rows with a large mean and a small deviation") {
  on_every_target([] {
    // 1000 ± a few units in the last place of float32. A mean rounded to float32 would lose a third of the deviation.
    const Matrix s{3, 100};
    auto in = layer_norm_inputs<float>(s, 0);
    for (float& x : in.x) x = 1000 + std::round(3 * x) * 0x1p-14f;
    const LayerNormResult<float> r = run(in, true, false);
    const LayerNormResult<long double> expected = reference(in, true, 0);
    REQUIRE(distance(r.y, expected.y) < 2e-6);
    REQUIRE(distance(r.dx, expected.dx) < 2e-6);
    REQUIRE(distance(r.dweight, expected.dweight) < 2e-6);
  });
}

TEST_CASE("layer_norm: constant rows give the bias, NaN, Inf and overflow give NaN in their row alone") {
  on_every_target([] {
    for (const float constant : {0.0f, 0.1f, -3e7f, 1e30f}) {
      auto in = layer_norm_inputs<float>({2, 50}, 0);
      std::fill(in.x.begin(), in.x.end(), constant);
      const LayerNormResult<float> r = run(in, true, false);
      INFO("constant " << constant);
      for (std::size_t i = 0; i < r.y.size(); ++i) REQUIRE(r.y[i] == in.bias[i % 50]);
      for (const float value : r.dx) REQUIRE(std::isfinite(value));
    }
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(), 3e38f}) {
      for (const std::size_t place : {std::size_t{50}, std::size_t{66}, std::size_t{99}}) {
        auto in = layer_norm_inputs<float>({3, 50}, 0);
        in.x[place] = bad;
        const std::vector<float> y = run(in, true, false).y;
        for (std::size_t i = 0; i < y.size(); ++i) REQUIRE(std::isnan(y[i]) == (i / 50 == 1));
      }
    }
  });
}

TEST_CASE("softmax and log_softmax agree with their formulas at every shape, on every target") {
  on_every_target([] {
    for (const Matrix& shape : kShapes) {
      for (const bool log : {false, true}) {
        require_softmax<float>(shape, log, false);
        require_softmax<double>(shape, log, true);
      }
    }
    // A vocabulary of equal logits, whose sum of exponentials is inexact as one long float32 chain.
    const Matrix wide{1, 50257};
    std::vector<float> x(50257, 0.0f);
    x[50000] = 0.11f;  // every other term is 0.896
    REQUIRE(distance(run_softmax(wide, false, x), softmax_reference(wide, false, x)) < 2e-6);
    const auto log_y = run_softmax(wide, true, x);
    const Reference exact = softmax_reference(wide, true, x);
    REQUIRE(std::abs(static_cast<double>(log_y[0]) - static_cast<double>(exact[0])) < 2e-6);
  });
}

TEST_CASE("softmax: extremes, NaN and infinities") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  on_every_target([&] {
    for (const std::int64_t cols : {1, 3, 16, 33, 65}) {
      const Matrix s{1, cols};
      const auto n = static_cast<std::size_t>(cols);
      INFO(cols << " columns");
      std::vector<float> x(n, -1e30f);
      x[n / 2] = 1e30f;
      auto y = run_softmax(s, false, x), log_y = run_softmax(s, true, x);
      for (std::size_t i = 0; i < n; ++i) {
        REQUIRE(y[i] == (i == n / 2 ? 1.0f : 0.0f));
        REQUIRE(log_y[i] == (i == n / 2 ? 0.0f : -2e30f));
      }
      x.assign(n, -inf);
      x[n - 1] = 5;
      y = run_softmax(s, false, x);
      log_y = run_softmax(s, true, x);
      for (std::size_t i = 0; i < n; ++i) {
        REQUIRE(y[i] == (i == n - 1 ? 1.0f : 0.0f));
        REQUIRE(log_y[i] == (i == n - 1 ? 0.0f : -inf));
      }
      for (const float bad : {nan, inf, -inf}) {  // for −Inf the whole row is −Inf
        for (std::size_t place = 0; place < n; ++place) {
          x.assign(n, bad == -inf ? -inf : 1.0f);
          x[place] = bad;
          for (const bool log : {false, true}) {
            for (const float value : run_softmax(s, log, x)) REQUIRE(std::isnan(value));
          }
        }
      }
    }
  });
}

TEST_CASE("softmax: the same bits with any number of threads") {
  on_every_target([] {
    for (const Matrix& s : {Matrix{300, 65}, Matrix{7, 5001}}) {
      const auto x = random_values<float>(s.numel(), 1, 0, 3), dy = random_values<float>(s.numel(), 2);
      for (const bool log : {false, true}) {
        const auto y = run_softmax(s, log, x);
        require_same_with_any_threads([&] { return run_softmax(s, log, x); });
        require_same_with_any_threads([&] { return run_softmax_backward(s, log, y, dy, false); });
      }
    }
  });
}
