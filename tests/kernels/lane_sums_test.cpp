// Sums over a row have one order of additions on every target: losses, gradients and checkpoints have its bits.
#include <cstdint>
#include <vector>

#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/kernels/lane_sums_test.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/simd/row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

template <class T>
double sum_of(std::int64_t n, const T* x) {
  return sum_row<T>(n, [x](const auto& at, std::int64_t i) HWY_ATTR { return at.Load(x + i); });
}
template <class T>
TwoSums two_sums_of(std::int64_t n, const T* x) {
  return sum_row_pair<T>(n, [x](const auto& at, std::int64_t i, auto& a, auto& b) HWY_ATTR {
    a = at.Load(x + i);
    b = hn::Add(a, a);
  });
}
HWY_NOINLINE double sum_of_floats(std::int64_t n, const float* x) { return sum_of(n, x); }
HWY_NOINLINE double sum_of_doubles(std::int64_t n, const double* x) { return sum_of(n, x); }
HWY_NOINLINE double two_sums_of_floats(std::int64_t n, const float* x) { return two_sums_of(n, x).b; }
HWY_NOINLINE double two_sums_of_doubles(std::int64_t n, const double* x) { return two_sums_of(n, x).b; }

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "tests/catch.h"
#include "tests/kernels/reference.h"
#include "tests/kernels/targets.h"

namespace maki::kernels {

MAKI_TARGETS(sum_of_floats);
MAKI_TARGETS(sum_of_doubles);
MAKI_TARGETS(two_sums_of_floats);
MAKI_TARGETS(two_sums_of_doubles);

namespace {

// The definition: segments of 256 elements, element i of a segment in lane i mod `lanes`, and the lanes by halves.
template <class T>
double sum_by_definition(const std::vector<T>& x, std::size_t lanes) {
  double total = 0;
  for (std::size_t begin = 0; begin < x.size(); begin += 256) {
    std::vector<T> sums(lanes, T{0});
    for (std::size_t i = begin; i < std::min(x.size(), begin + 256); ++i) sums[(i - begin) % lanes] += x[i];
    while (sums.size() > 1) {
      const std::size_t half = sums.size() / 2;
      for (std::size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
      sums.resize(half);
    }
    total += static_cast<double>(sums.front());
  }
  return total;
}

template <class T, class Sum, class TwoSums>
void require_definition(const Sum& sum, const TwoSums& two_sums) {
  int differ = 0;
  for (const std::int64_t n : {0, 1, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 255, 256, 257, 300, 511, 777}) {
    const std::vector<T> x = tests::random_values<T>(n, static_cast<std::uint64_t>(n));
    INFO(n);
    REQUIRE(sum(n, x.data()) == sum_by_definition(x, 128 / sizeof(T)));
    REQUIRE(two_sums(n, x.data()) == 2 * sum_by_definition(x, 128 / sizeof(T)));
    differ += sum_by_definition(x, 128 / sizeof(T)) != sum_by_definition(x, 64 / sizeof(T)) ? 1 : 0;
  }
  REQUIRE(differ > 5);
}

}  // namespace

TEST_CASE("sums over rows have the bits of their definition on every target") {
  tests::on_every_target([] {
    require_definition<float>([](std::int64_t n, const float* x) { return MAKI_ON_TARGET(sum_of_floats)(n, x); },
                              [](std::int64_t n, const float* x) { return MAKI_ON_TARGET(two_sums_of_floats)(n, x); });
    require_definition<double>(
        [](std::int64_t n, const double* x) { return MAKI_ON_TARGET(sum_of_doubles)(n, x); },
        [](std::int64_t n, const double* x) { return MAKI_ON_TARGET(two_sums_of_doubles)(n, x); });
  });
}

}  // namespace maki::kernels
#endif
