// SIMD math functions against 80-bit libm on every target: errors in units in the last place, the ends of the range,
// NaN, partial vectors; and Philox words against the plain generator.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "autograd/core/philox.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/kernels/math_test.cpp"
#include <hwy/foreach_target.h>

#include "autograd/kernels/simd/activation-inl.h"
#include "autograd/kernels/simd/partial-inl.h"
#include "autograd/kernels/simd/philox-inl.h"

#ifndef MAKI_TESTS_MATH_FUNCTION_
#define MAKI_TESTS_MATH_FUNCTION_
namespace maki::kernels {
enum class Function { exp, log, tanh, sigmoid, erf, normal_cdf, gelu, gelu_tanh, silu, gelu_d, gelu_tanh_d, silu_d };
}
#endif

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V = hn::Vec<D>>
HWY_INLINE V call(Function f, D d, V x) {
  V density;
  switch (f) {
    case Function::exp:
      return Exp(d, x);
    case Function::log:
      return Log(d, x);
    case Function::tanh:
      return Tanh(d, x);
    case Function::sigmoid:
      return Sigmoid(d, x);
    case Function::erf:
      return Erf(d, x);
    case Function::normal_cdf:
      return NormalCdf(d, x, density);
    case Function::gelu:
      return Gelu(d, x);
    case Function::gelu_tanh:
      return GeluTanh(d, x);
    case Function::silu:
      return Silu(d, x);
    case Function::gelu_d:
      return GeluDerivative(d, x);
    case Function::gelu_tanh_d:
      return GeluTanhDerivative(d, x);
    case Function::silu_d:
      return SiluDerivative(d, x);
  }
  return x;
}

template <class T>
HWY_INLINE void apply(Function f, std::size_t n, const T* x, T* y) {
  const hn::ScalableTag<T> d;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    const auto rest = static_cast<std::int64_t>(n - i);
    StorePartial(call(f, d, LoadPartial(d, x + i, rest)), d, y + i, rest);
  }
}
template <class T>
HWY_INLINE T larger(T a, T b) {
  const hn::ScalableTag<T> d;
  return hn::GetLane(MaxKeepNaN(hn::Set(d, a), hn::Set(d, b)));
}

void apply_f32(Function f, std::size_t n, const float* x, float* y) { apply(f, n, x, y); }
void apply_f64(Function f, std::size_t n, const double* x, double* y) { apply(f, n, x, y); }
// 100 times the number of elements that a partial load of `count` elements reads, plus the number that a store writes.
template <class T>
HWY_INLINE std::int64_t touched_by_partial_access(std::int64_t count) {
  const hn::ScalableTag<T> d;
  T from[64], to[64] = {};
  std::fill_n(from, 64, T{7});
  const auto v = LoadPartial(d, from, count);
  const std::int64_t loaded = static_cast<std::int64_t>(hn::CountTrue(d, hn::Eq(v, hn::Set(d, T{7}))));
  StorePartial(hn::Set(d, T{7}), d, to, count);
  return 100 * loaded + std::count(to, to + 64, T{7});
}
std::int64_t touched_by_partial_access_f32(std::int64_t count) { return touched_by_partial_access<float>(count); }
std::int64_t touched_by_partial_access_f64(std::int64_t count) { return touched_by_partial_access<double>(count); }
float larger_f32(float a, float b) { return larger(a, b); }
double larger_f64(double a, double b) { return larger(a, b); }
void draw_words(const RandomStream& stream, std::uint64_t first, std::uint64_t blocks, std::uint32_t* words) {
  philox_words(stream, first, blocks, words);
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "tests/catch.h"
#include "tests/kernels/targets.h"

namespace maki::kernels {
MAKI_TARGETS(apply_f32);
MAKI_TARGETS(apply_f64);
MAKI_TARGETS(touched_by_partial_access_f32);
MAKI_TARGETS(touched_by_partial_access_f64);
MAKI_TARGETS(larger_f32);
MAKI_TARGETS(larger_f64);
MAKI_TARGETS(draw_words);

namespace {

template <class T>
std::vector<T> apply_to(Function f, const std::vector<T>& x) {
  std::vector<T> y(x.size(), T{-77});
  if constexpr (sizeof(T) == 4) {
    MAKI_ON_TARGET(apply_f32)(f, x.size(), x.data(), y.data());
  } else {
    MAKI_ON_TARGET(apply_f64)(f, x.size(), x.data(), y.data());
  }
  return y;
}
template <class T>
T larger_of(T a, T b) {
  if constexpr (sizeof(T) == 4) {
    return MAKI_ON_TARGET(larger_f32)(a, b);
  } else {
    return MAKI_ON_TARGET(larger_f64)(a, b);
  }
}

using tests::on_every_target;

constexpr long double kPi = std::numbers::pi_v<long double>;

long double reference(Function f, long double x) {
  const long double cdf = std::erfc(-x / std::sqrt(2.0L)) / 2, density = std::exp(-x * x / 2) / std::sqrt(2 * kPi);
  const auto sigmoid = [](long double v) { return v > 0 ? 1 / (1 + std::exp(-v)) : std::exp(v) / (1 + std::exp(v)); };
  const long double c = 2 * std::sqrt(2 / kPi), u = c * (x + 0.044715L * x * x * x);
  const long double s = sigmoid(x), su = sigmoid(u);
  switch (f) {
    case Function::exp:
      return std::exp(x);
    case Function::log:
      return std::log(x);
    case Function::tanh:
      return std::tanh(x);
    case Function::sigmoid:
      return s;
    case Function::erf:
      return std::erf(x);
    case Function::normal_cdf:
      return cdf;
    case Function::gelu:
      return x * cdf;
    case Function::gelu_tanh:
      return x * su;
    case Function::silu:
      return x * s;
    case Function::gelu_d:
      return cdf + x * density;
    case Function::gelu_tanh_d:
      return su + x * su * (1 - su) * c * (1 + 3 * 0.044715L * x * x);
    case Function::silu_d:
      return s + x * s * (1 - s);
  }
  return x;
}

// |y − r| in units in the last place of T at r; huge if one of them is NaN or infinite and the other is not.
template <class T>
double ulps(T y, long double r) {
  const T rounded = static_cast<T>(r);
  if (std::isnan(rounded) || std::isnan(y)) return std::isnan(rounded) && std::isnan(y) ? 0 : 1e30;
  if (std::isinf(rounded) || std::isinf(y)) return rounded == y ? 0 : 1e30;
  const T size = std::abs(rounded);
  const T below = size - std::nextafter(size, T{0});
  const T unit = size == 0 ? std::numeric_limits<T>::denorm_min() : below;
  return static_cast<double>(std::abs(static_cast<long double>(y) - r) / static_cast<long double>(unit));
}

// Arguments over the whole domain: uniform up to its limit, uniform near 0 (near 1 for log), and of all magnitudes.
template <class T>
std::vector<T> arguments(Function f, std::size_t n) {
  constexpr bool kIsFloat = sizeof(T) == 4;
  const RandomStream random(5, RandomPurpose::test);
  const double limit = f == Function::exp || f == Function::sigmoid ? (kIsFloat ? 104 : 746)
                       : f == Function::tanh                        ? 21
                                                                    : 6.5;
  std::vector<T> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double u = random.uniform(2 * i), sign = random.bits(8 * i + 5) % 2 == 0 ? 1 : -1;
    if (f == Function::log) {
      x[i] = static_cast<T>(i % 2 == 0 ? 0.5 + 1.5 * u : std::exp((2 * u - 1) * (kIsFloat ? 88 : 708)));
    } else {
      x[i] = static_cast<T>(sign * (i % 3 == 0   ? u * limit
                                    : i % 3 == 1 ? 2 * u
                                                 : std::exp((u - 1) * (kIsFloat ? 100 : 740))));
    }
  }
  return x;
}

template <class T>
void require_ulps(Function f, double bound) {
  const std::vector<T> x = arguments<T>(f, 20000), y = apply_to(f, x);
  double worst = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(y[i], reference(f, x[i]));
    if (!(error <= worst)) {
      worst = error;
      at = i;
    }
  }
  INFO("function " << static_cast<int>(f) << ", " << sizeof(T) << " bytes, at " << x[at] << ": " << y[at]);
  REQUIRE(worst <= bound);
  REQUIRE(worst > 0);
}

template <class T>
void require_ends(Function f, const std::vector<std::pair<double, double>>& ends) {
  std::vector<T> x;
  for (const auto& end : ends) x.push_back(static_cast<T>(end.first));
  const std::vector<T> y = apply_to(f, x);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    INFO("function " << static_cast<int>(f) << " of " << x[i] << ": " << y[i] << ", should be " << ends[i].second);
    const T expected = static_cast<T>(ends[i].second);
    if (std::isnan(expected)) {
      REQUIRE(std::isnan(y[i]));
    } else {
      REQUIRE(y[i] == expected);
      REQUIRE(std::signbit(y[i]) == std::signbit(expected));
    }
  }
}

constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

template <class T>
void require_all_ends() {
  constexpr double tiny = std::numeric_limits<T>::denorm_min(), least = std::numeric_limits<T>::min();
  constexpr double most = std::numeric_limits<T>::max();
  require_ends<T>(Function::exp, {{kNaN, kNaN},
                                  {kInf, kInf},
                                  {-kInf, 0},
                                  {most, kInf},
                                  {-most, 0},
                                  {0, 1},
                                  {-0.0, 1},
                                  {tiny, 1},
                                  {1e5, kInf},
                                  {-1e5, 0}});
  require_ends<T>(
      Function::log,
      {{kNaN, kNaN}, {kInf, kInf}, {-kInf, kNaN}, {0, -kInf}, {-0.0, -kInf}, {-1, kNaN}, {-tiny, kNaN}, {1, 0}});
  require_ends<T>(Function::tanh, {{kNaN, kNaN},
                                   {kInf, 1},
                                   {-kInf, -1},
                                   {0, 0},
                                   {-0.0, -0.0},
                                   {most, 1},
                                   {-most, -1},
                                   {30, 1},
                                   {tiny, tiny},
                                   {-tiny, -tiny},
                                   {least, least}});
  require_ends<T>(Function::sigmoid,
                  {{kNaN, kNaN}, {kInf, 1}, {-kInf, 0}, {0, 0.5}, {-0.0, 0.5}, {most, 1}, {-most, 0}, {tiny, 0.5}});
  require_ends<T>(Function::erf,
                  {{kNaN, kNaN}, {kInf, 1}, {-kInf, -1}, {0, 0}, {-0.0, -0.0}, {most, 1}, {-7, -1}, {tiny, tiny}});
  require_ends<T>(Function::normal_cdf, {{kNaN, kNaN}, {kInf, 1}, {-kInf, 0}, {0, 0.5}, {-most, 0}, {40, 1}});
  for (const Function f : {Function::gelu, Function::gelu_tanh, Function::silu}) {
    require_ends<T>(f, {{kNaN, kNaN}, {kInf, kInf}, {-kInf, kNaN}, {0, 0}, {1e10, 1e10}, {-1e10, -0.0}});
  }
  for (const Function f : {Function::gelu_d, Function::gelu_tanh_d, Function::silu_d}) {
    require_ends<T>(f, {{kNaN, kNaN}, {kInf, 1}, {0, 0.5}, {1e10, 1}, {most, 1}});
    const std::vector<T> left = apply_to(f, std::vector<T>{-std::numeric_limits<T>::infinity(), static_cast<T>(-most)});
    REQUIRE(left == std::vector<T>{0, 0});
  }
  // Subnormals on either side: exp's results and log's arguments.
  const double deep = sizeof(T) == 4 ? -95 : -730;
  REQUIRE(ulps(apply_to(Function::exp, std::vector<T>{static_cast<T>(deep)})[0],
               std::exp(static_cast<long double>(deep))) <= 1);
  REQUIRE(ulps(apply_to(Function::log, std::vector<T>{static_cast<T>(tiny)})[0],
               std::log(static_cast<long double>(tiny))) <= 1);
}

template <class T>
void require_larger() {
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  REQUIRE(larger_of(T{1}, T{2}) == 2);
  REQUIRE(larger_of(T{2}, T{1}) == 2);
  REQUIRE(larger_of(-inf, T{1}) == 1);
  REQUIRE(larger_of(inf, T{1}) == inf);
  REQUIRE(std::isnan(larger_of(nan, T{1})));
  REQUIRE(std::isnan(larger_of(T{1}, nan)));
  REQUIRE(std::isnan(larger_of(inf, nan)));
}

// The result for a number has the same bits in a whole vector and in a tail of any length.
template <class T>
void require_same_bits_in_tails(Function f) {
  const std::vector<T> x = arguments<T>(f, 67), whole = apply_to(f, x);
  for (std::size_t n = 1; n < x.size(); ++n) {
    const std::vector<T> part = apply_to(f, std::vector<T>(x.end() - static_cast<std::ptrdiff_t>(n), x.end()));
    REQUIRE(std::memcmp(part.data(), whole.data() + whole.size() - n, n * sizeof(T)) == 0);
  }
}

constexpr std::array kFunctions = {Function::exp,        Function::log,    Function::tanh,        Function::sigmoid,
                                   Function::erf,        Function::gelu,   Function::gelu_tanh,   Function::silu,
                                   Function::normal_cdf, Function::gelu_d, Function::gelu_tanh_d, Function::silu_d};

}  // namespace

TEST_CASE("SIMD math functions are accurate to a few units in the last place on every target") {
  on_every_target([] {
    const std::pair<Function, double> bounds[] = {{Function::exp, 1.2},  {Function::log, 1},
                                                  {Function::tanh, 2.8}, {Function::sigmoid, 2.6},
                                                  {Function::erf, 2.8},  {Function::silu, 3.2}};
    for (const auto& entry : bounds) {
      require_ulps<float>(entry.first, entry.second);
      require_ulps<double>(entry.first, entry.second);
    }
  });
}

TEST_CASE("activations and their derivatives are accurate to the rounding error of values near 1") {
  on_every_target([] {
    for (const Function f : {Function::normal_cdf, Function::gelu, Function::gelu_tanh, Function::gelu_d,
                             Function::gelu_tanh_d, Function::silu_d}) {
      int compared = 0;
      for (double x = -12; x <= 12; x += 0.0103, ++compared) {
        INFO("function " << static_cast<int>(f) << " at " << x);
        const float narrow = static_cast<float>(x);
        const auto scale = static_cast<double>(std::max(1.0L, std::abs(reference(f, x))));
        const double error64 = std::abs(apply_to(f, std::vector<double>{x})[0] - static_cast<double>(reference(f, x)));
        const double error32 =
            std::abs(apply_to(f, std::vector<float>{narrow})[0] - static_cast<double>(reference(f, narrow)));
        REQUIRE(error64 <= 2e-15 * scale);
        REQUIRE(error32 <= 8e-7 * scale);
      }
      REQUIRE(compared > 2000);
    }
    // The left tail keeps its precision where 1 + erf would cancel: in float32 that is 0 below -5.4.
    for (float x = -5.6f; x < -1; x += 0.07f) {
      const double exact = static_cast<double>(reference(Function::normal_cdf, x));
      REQUIRE(std::abs(apply_to(Function::normal_cdf, std::vector<float>{x})[0] / exact - 1) < 2e-6);
    }
  });
}

TEST_CASE("vector math at its ends: NaN, infinities, zeros, subnormals") {
  on_every_target([] {
    require_all_ends<float>();
    require_all_ends<double>();
    require_larger<float>();
    require_larger<double>();
  });
}

TEST_CASE("a number has the same bits in a partial vector as in a whole one") {
  on_every_target([] {
    for (const Function f : kFunctions) {
      require_same_bits_in_tails<float>(f);
      require_same_bits_in_tails<double>(f);
    }
  });
}

TEST_CASE("Philox on vectors draws the words of the plain generator") {
  const RandomStream stream(42, RandomPurpose::test, 7, 8, 9);
  on_every_target([&] {
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{0xFFFFFFFD}}) {
      for (const unsigned blocks : {1u, 2u, 3u, 7u, 8u, 9u, 16u, 31u, 64u}) {
        alignas(64) std::array<std::uint32_t, 256> words{};
        MAKI_ON_TARGET(draw_words)(stream, first, blocks, words.data());
        for (std::size_t i = 0; i < 4 * blocks; ++i) {
          INFO("first block " << first << ", word " << i);
          REQUIRE(words[i] == stream.bits(4 * first + i));
        }
      }
    }
  });
}

TEST_CASE("partial vectors: a count of 0 or below reads and writes nothing, on every target") {
  on_every_target([] {
    for (const std::int64_t count : {-1000, -9, -4, -1, 0, 1}) {
      INFO("count " << count);
      REQUIRE(MAKI_ON_TARGET(touched_by_partial_access_f32)(count) == (count == 1 ? 101 : 0));
      REQUIRE(MAKI_ON_TARGET(touched_by_partial_access_f64)(count) == (count == 1 ? 101 : 0));
    }
  });
}

}  // namespace maki::kernels
#endif
