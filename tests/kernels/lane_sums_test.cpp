// sum_of_lanes() adds in one order, whatever the release of Highway: losses and gradients have its bits.
#include <cstdint>
#include <vector>

#include "autograd/kernels/simd/target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/kernels/sum_of_lanes_test.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/simd/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

template <class T>
T sum_of_first_lanes(const T* x, std::int64_t* lanes) {
  const hn::ScalableTag<T> d;
  *lanes = static_cast<std::int64_t>(hn::Lanes(d));
  return sum_of_lanes(d, hn::LoadU(d, x));
}
HWY_NOINLINE float sum_of_floats(const float* x, std::int64_t* lanes) { return sum_of_first_lanes(x, lanes); }
HWY_NOINLINE double sum_of_doubles(const double* x, std::int64_t* lanes) { return sum_of_first_lanes(x, lanes); }

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "tests/catch.h"
#include "tests/kernels/reference.h"
#include "tests/kernels/targets.h"

namespace maki::kernels {

HWY_EXPORT(sum_of_floats);
HWY_EXPORT(sum_of_doubles);

namespace {

// The sum of x, whose size is a power of two: lane i with lane i + n/2, until one is left; or neighbours first.
template <class T>
T sum_by_halves(std::vector<T> x, bool neighbours = false) {
  while (x.size() > 1) {
    const std::size_t half = x.size() / 2;
    for (std::size_t i = 0; i < half; ++i) x[i] = neighbours ? x[2 * i] + x[2 * i + 1] : x[i] + x[i + half];
    x.resize(half);
  }
  return x.front();
}

template <class T, class Sum>
void require_halves(const Sum& sum) {
  int differ = 0;
  std::int64_t lanes = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::vector<T> x = tests::random_values<T>(64, seed);
    const T got = sum(x.data(), &lanes);
    x.resize(static_cast<std::size_t>(lanes));
    REQUIRE(got == sum_by_halves(x));
    differ += sum_by_halves(x) != sum_by_halves(x, /*neighbours=*/true) ? 1 : 0;
  }
  REQUIRE((differ > 10 || lanes < 4));
}

}  // namespace

TEST_CASE("the lanes of a vector are added by halves on every target") {
  tests::on_every_target([] {
    require_halves<float>(
        [](const float* x, std::int64_t* lanes) { return HWY_DYNAMIC_DISPATCH(sum_of_floats)(x, lanes); });
    require_halves<double>(
        [](const double* x, std::int64_t* lanes) { return HWY_DYNAMIC_DISPATCH(sum_of_doubles)(x, lanes); });
  });
}

}  // namespace maki::kernels
#endif
