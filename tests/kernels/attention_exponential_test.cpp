// The exponential of attention in bfloat16, exp2_of_score(), against std::exp2, on the targets that have it.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "autograd/kernels/simd/dispatch.h"
#include "autograd/kernels/simd/flush_subnormals.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/kernels/attention_exponential_test.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/attention/bf16_panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

// x [n] becomes 2^x, n a multiple of 16; false if the target has no such function.
HWY_NOINLINE bool exp2_of_scores([[maybe_unused]] std::int64_t n, [[maybe_unused]] float* x) {
#if MAKI_HAVE_BF16
  const LaneFloats d;
  for (std::int64_t i = 0; i < n; i += kLaneCount) hn::StoreU(exp2_of_score(hn::LoadU(d, x + i)), d, x + i);
#endif
  return MAKI_HAVE_BF16 != 0;
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "tests/catch.h"
#include "tests/kernels/targets.h"
#include "tests/max_or_nan.h"

namespace maki::kernels {

MAKI_TARGETS(exp2_of_scores);

namespace {

// Runs body(exp2), where exp2 maps a list of numbers, on every target that has the function.
template <class Body>
void on_every_target_with_exponential(const Body& body) {
  tests::on_every_target([&] {
    std::vector<float> probe(16);
    if (!MAKI_ON_TARGET(exp2_of_scores)(16, probe.data())) return;
    body([](std::vector<float> x) {
      const std::size_t count = x.size();
      x.resize((count + 15) / 16 * 16);
      const FlushSubnormals flush;
      MAKI_ON_TARGET(exp2_of_scores)(static_cast<std::int64_t>(x.size()), x.data());
      x.resize(count);
      return x;
    });
  });
}

}  // namespace

TEST_CASE("the exponential of scores has a relative error of at most 1.7e-7 where its result is not subnormal") {
  on_every_target_with_exponential([](const auto& exp2) {
    std::vector<float> x;
    for (int i = 0; i <= 400'000; ++i) x.push_back(-126 + static_cast<float>(i) * (134.0F / 400'000));
    const std::vector<float> y = exp2(x);
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = std::exp2(static_cast<double>(x[i]));
      worst = tests::max_or_nan(worst, std::abs(static_cast<double>(y[i]) / exact - 1));
    }
    REQUIRE(worst <= 1.7e-7);
    REQUIRE(worst > 1e-8);
  });
}

TEST_CASE("the exponential of scores is exact at integers, 0 far below, and NaN for NaN") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  on_every_target_with_exponential([](const auto& exp2) {
    REQUIRE(exp2({0.0F, -0.0F, -1, -126, 7}) == std::vector<float>{1, 1, 0.5F, 0x1p-126F, 128});
    REQUIRE(exp2({-126.5F, -200, -1e30F, -kInf}) == std::vector<float>(4, 0.0F));
    REQUIRE(std::isnan(exp2({std::numeric_limits<float>::quiet_NaN()})[0]));
  });
}

}  // namespace maki::kernels
#endif  // HWY_ONCE
