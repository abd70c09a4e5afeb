// What `maki bench` says about a machine: its peak, its memory, and how times are summed up. No test depends on how
// fast anything is.
#include <algorithm>
#include <cmath>

#include "autograd/kernels/peak.h"
#include "autograd/kernels/simd/target.h"
#include "data/io/error.h"
#include "data/io/os.h"
#include "tests/catch.h"
#include "train/app/bench/machine.h"
#include "train/app/bench/timing.h"
#include "train/app/verbs/bench.h"

using namespace maki;

TEST_CASE("a machine is described with its rates in units of a thousand million") {
  Machine machine{.product_unit = ProductUnit::multiply_adds,
                  .multiply_add_flop_per_second = 456e9,
                  .peak_flop_per_second = 456e9,
                  .peak_flop_per_second_one_thread = 228e9,
                  .copy_bytes_per_second = 21e9};
  REQUIRE_THAT(
      describe(machine, Precision::float32),
      Catch::Matchers::EndsWith(": peak 456 GFLOP/s for multiply-adds (228 on one thread), copies at 21.0 GB/s"));
  machine.product_unit = ProductUnit::amx_tiles;
  machine.peak_flop_per_second = 3000e9;
  machine.peak_flop_per_second_one_thread = 1500e9;
  REQUIRE_THAT(describe(machine, Precision::float32),
               Catch::Matchers::EndsWith(": peak 3000 GFLOP/s for products on AMX tiles (1500 on one thread), 456 "
                                         "GFLOP/s for other multiply-adds, copies at 21.0 GB/s"));
}

TEST_CASE("timings: quartiles, and a warning if they are far apart") {
  const Timings steady({5, 1, 3, 2, 4});
  REQUIRE(steady.median() == 3);
  REQUIRE(steady.best() == 1);
  REQUIRE(steady.quantile(0.25) == 2);
  REQUIRE(Timings({1, 2}).median() == 1.5);
  REQUIRE_THAT(steady.noise_warning(), ContainsSubstring("2,000 ms and 4,000 ms"));
  REQUIRE(Timings({1, 1.02, 1.01, 9}).noise_warning() != "");
  REQUIRE(Timings({1, 1.02, 1.01, 1.03, 9}).noise_warning().empty());
  REQUIRE_THROWS_AS(Timings({}), Error);
  int calls = 0;
  REQUIRE(measure_calls([&] { ++calls; }, {.calls = 7}).count() == 7);
  REQUIRE(calls > 700);  // one call is too short to be timed, so several are timed together
}

TEST_CASE("the peak and the memory of a machine are measured") {
  const ThreadTeam team(2);
  for (const DType dtype : {DType::float32, DType::float64}) {
    const double peak = measure_peak_flop_per_second(dtype);
    REQUIRE(std::isfinite(peak));
    REQUIRE(peak > 1e6);
  }
  REQUIRE(os::peak_memory() > 1 << 20);
}

TEST_CASE("the loops that measure a machine compute what they claim, on every target") {
  for (const std::string& name : kernels::available_targets()) {
    kernels::force_target(name);
    INFO("target " << kernels::target());
    REQUIRE(kernels::run_fma_chains<float>(64) == 1);
    REQUIRE(kernels::run_fma_chains<double>(64) == 1);
    REQUIRE(kernels::run_fma_chains<float>(1) != 1);
    REQUIRE(kernels::fma_flop_per_round<float>() >= kernels::fma_flop_per_round<double>());
    if (kernels::uses_amx()) {
      REQUIRE(kernels::run_amx_chains(1) == 1);
      REQUIRE(kernels::run_amx_chains(1000) == 1);
      REQUIRE(kernels::amx_flop_per_round() == 2 * 32 * 32 * 32);
    } else {
      REQUIRE_THROWS_AS(kernels::run_amx_chains(1), Error);
    }
    REQUIRE(kernels::run_bf16_chains(64) == 1);
    REQUIRE(kernels::run_bf16_chains(5000) == 1);
    REQUIRE(kernels::bf16_flop_per_round() >= kernels::fma_flop_per_round<float>());
    for (const std::int64_t n : {0, 1, 15, 16, 17, 1000}) {
      const Tensor x = full({n + 1}, DType::float32, 2);
      Tensor y = zeros({n + 1}, DType::float32);
      kernels::stream_copy(n, x.data<float>(), y.data<float>());
      REQUIRE(std::ranges::count(y.values<float>(), 2.0f) == n);
      REQUIRE(y.at(n) == 0);
    }
  }
  kernels::force_target("");
}
