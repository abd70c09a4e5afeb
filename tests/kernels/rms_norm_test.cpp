// rms_norm against a plain long double reference, on every SIMD target.
#include "autograd/kernels/rms_norm.h"

#include <limits>

#include "tests/kernels/reference.h"

using namespace maki;
using namespace maki::tests;

namespace {

struct RmsMatrix {
  std::int64_t rows, cols;
  std::int64_t numel() const { return rows * cols; }
};
// Narrow rows, vector widths and their neighbours, more rows than a block, rows longer than a segment.
constexpr RmsMatrix kRmsShapes[] = {{1, 1},    {5, 2},   {3, 3},    {4, 4},   {33, 5},  {2, 15},  {9, 16},
                                    {100, 17}, {65, 64}, {129, 65}, {3, 255}, {5, 257}, {1, 5001}};

template <class T>
struct RmsResult {
  std::vector<T> y, dx, dweight;
};

template <class T>
struct Inputs {
  RmsMatrix shape;
  std::vector<T> x, weight, dy;
};
template <class T>
Inputs<T> inputs(const RmsMatrix& s, double mean) {
  const auto seed = static_cast<std::uint64_t>(s.rows * 10007 + s.cols);
  return {s, random_values<T>(s.numel(), seed, mean), random_values<T>(s.cols, seed + 1, 1, 0.5),
          random_values<T>(s.numel(), seed + 2)};
}

template <class T>
RmsResult<T> run(const Inputs<T>& in, bool weighted, bool add, bool wants_dx = true, bool wants_dweight = true) {
  const RmsMatrix s = in.shape;
  Output<T> y(s.numel(), false), rrms(s.rows, false), dx(s.numel(), add), dweight(s.cols, add);
  Output<T> scratch(kernels::rms_norm_backward_scratch(s.rows, s.cols), false);
  const T* const weight = weighted ? in.weight.data() : nullptr;
  kernels::rms_norm_forward(s.rows, s.cols, in.x.data(), weight, 1e-5, y.data(), rrms.data());
  kernels::rms_norm_backward(s.rows, s.cols, in.x.data(), weight, rrms.values().data(), in.dy.data(),
                             wants_dx ? dx.sink() : Sink<T>(), wants_dweight ? dweight.sink() : Sink<T>(),
                             scratch.data());
  scratch.values();
  return {y.values(), dx.values(), dweight.values()};
}

template <class T>
RmsResult<long double> reference(const Inputs<T>& in, bool weighted, long double start) {
  const auto n = static_cast<std::size_t>(in.shape.cols), all = in.x.size();
  const auto count = static_cast<long double>(n);
  RmsResult<long double> r{Reference(all), Reference(all), Reference(n, start)};
  for (std::size_t at = 0; at < all; at += n) {
    const auto x = [&](std::size_t j) { return static_cast<long double>(in.x[at + j]); };
    const auto w = [&](std::size_t j) { return weighted ? static_cast<long double>(in.weight[j]) : 1; };
    const auto dy = [&](std::size_t j) { return static_cast<long double>(in.dy[at + j]); };
    long double square = 0, dot = 0;
    for (std::size_t j = 0; j < n; ++j) square += x(j) * x(j) / count;
    const long double rrms = 1 / std::sqrt(square + 1e-5L);
    for (std::size_t j = 0; j < n; ++j) {
      r.y[at + j] = x(j) * rrms * w(j);
      r.dweight[j] += dy(j) * x(j) * rrms;
      dot += dy(j) * w(j) * x(j) * rrms / count;
    }
    for (std::size_t j = 0; j < n; ++j) r.dx[at + j] = start + rrms * (dy(j) * w(j) - x(j) * rrms * dot);
  }
  return r;
}

template <class T>
void require_right(const RmsMatrix& shape, double mean, bool weighted, bool add) {
  INFO(shape.rows << " rows, " << shape.cols << " columns, mean " << mean << ", weight " << weighted << ", add "
                  << add);
  const Inputs<T> in = inputs<T>(shape, mean);
  const RmsResult<T> r = run(in, weighted, add);
  const RmsResult<long double> expected = reference(in, weighted, add ? 2 : 0);
  const auto scale = static_cast<long double>(std::sqrt(static_cast<double>(shape.numel())));
  REQUIRE(distance(r.y, expected.y, 0.1L * scale) < bound_of<T>());
  REQUIRE(distance(r.dx, expected.dx, shape.cols < 4 ? 400 * scale : 0.1L * scale) < bound_of<T>());
  REQUIRE(distance(r.dweight, expected.dweight, 0.1L * scale) < bound_of<T>());
}

}  // namespace

TEMPLATE_TEST_CASE("rms_norm agrees with its formula at every shape, on every target", "", float, double) {
  on_every_target([] {
    for (const RmsMatrix& shape : kRmsShapes) {
      for (const bool weighted : {false, true}) {
        for (const bool add : {false, true}) require_right<TestType>(shape, 0, weighted, add);
      }
      require_right<TestType>(shape, 10, true, false);
    }
  });
}

TEMPLATE_TEST_CASE("rms_norm gives each gradient alone the bits that it has with the other, with any threads", "",
                   float, double) {
  on_every_target([] {
    const Inputs<TestType> in = inputs<TestType>({300, 129}, 0);
    const RmsResult<TestType> both = run(in, true, false);
    REQUIRE(same_bits(run(in, true, false, true, false).dx, both.dx));
    REQUIRE(same_bits(run(in, true, false, false, true).dweight, both.dweight));
    require_same_with_any_threads([&] {
      const RmsResult<TestType> r = run(in, true, false);
      std::vector<TestType> all = r.y;
      all.insert(all.end(), r.dx.begin(), r.dx.end());
      all.insert(all.end(), r.dweight.begin(), r.dweight.end());
      return all;
    });
  });
}

TEST_CASE(
    "rms_norm: squares beyond float32 are no problem, zeros give zeros, NaN and overflow give NaN in their row alone") {
  on_every_target([] {
    constexpr std::int64_t kCols = 21;
    std::vector<float> x(5 * kCols, 1e30F), y(x.size()), rrms(5);
    std::fill_n(x.begin() + kCols, kCols, 0.0F);
    x[2 * kCols + 20] = std::numeric_limits<float>::quiet_NaN();
    x[3 * kCols + 20] = -std::numeric_limits<float>::infinity();
    std::fill_n(x.begin() + 4 * kCols, kCols, 1e-30F);
    kernels::rms_norm_forward<float>(5, kCols, x.data(), nullptr, 1e-5, y.data(), rrms.data());
    for (std::size_t i = 0; i < kCols; ++i) {
      REQUIRE(y[i] == Approx(1).epsilon(1e-6));
      REQUIRE(y[kCols + i] == 0);
      REQUIRE(std::isnan(y[2 * kCols + i]));
      REQUIRE(std::isnan(y[3 * kCols + i]));
      REQUIRE(y[4 * kCols + i] == Approx(1e-30 / std::sqrt(1e-5)).epsilon(1e-6));
    }
    const std::vector<double> huge(kCols, 1e200);
    std::vector<double> z(kCols), one(1);
    kernels::rms_norm_forward<double>(1, kCols, huge.data(), nullptr, 1e-5, z.data(), one.data());
    for (const double value : z) REQUIRE(std::isnan(value));
  });
}
