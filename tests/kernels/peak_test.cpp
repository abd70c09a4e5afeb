// The loops that measure the peak rates of a machine, on every target and unit: what they compute, which shows that
// they execute what is counted.
#include "autograd/kernels/peak.h"

#include <numeric>

#include "tests/kernels/bf16_units.h"
#include "tests/kernels/gemm_case.h"

namespace maki::kernels {

TEST_CASE("chains of multiply-adds, pairs and tiles end with a mean of 1", "[peak]") {
  on_every_target_with_amx([] {
    REQUIRE(run_fma_chains<float>(64) == 1);
    REQUIRE(run_fma_chains<double>(64) == 1);
    if (!uses_amx()) return;
    REQUIRE(run_amx_chains(1) == 1);
    REQUIRE(run_amx_chains(20) == 1);
  });
  on_every_unit([] {
    REQUIRE(run_bf16_chains(64) == 1);
    const Bf16Unit unit = bf16_unit();
    if (unit == Bf16Unit::amx) REQUIRE(bf16_flop_per_round() == 6 * amx_flop_per_round());
    if (unit == Bf16Unit::pairs) REQUIRE(bf16_flop_per_round() == 4 * kPairChains * kPairsInVector);
    if (unit == Bf16Unit::floats) REQUIRE(bf16_flop_per_round() == fma_flop_per_round<float>());
  });
}

TEST_CASE("the sum and the copy that measure memory are of all numbers", "[peak]") {
  on_every_target_with_amx([] {
    for (const std::int64_t n : {0, 1, 15, 16, 127, 128, 129, 1000}) {
      Scratch<float> x(n * std::int64_t{sizeof(float)}), y(n * std::int64_t{sizeof(float)});
      std::iota(x.data(), x.data() + n, 1.0F);
      INFO("n " << n);
      REQUIRE(stream_sum(n, x.data()) == static_cast<double>(n * (n + 1) / 2));
      stream_copy(n, x.data(), y.data());
      REQUIRE(std::equal(x.data(), x.data() + n, y.data()));
      REQUIRE(y.guard_is_intact());
    }
  });
}

}  // namespace maki::kernels
