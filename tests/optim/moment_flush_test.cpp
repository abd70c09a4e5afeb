// Where a gradient stays 0, moments decay to exactly 0 without passing through the subnormal numbers, whose arithmetic
// is slow.
#include <cmath>
#include <limits>

#include "autograd/kernels/simd/target.h"
#include "tests/catch.h"
#include "tests/optim/small_store.h"

using namespace maki;
using namespace maki::tests;

namespace {

const std::vector<OptimizerOptions> kWithMoments = {
    SgdOptions{.momentum = 0.8},
    AdamOptions{.beta1 = 0.7, .beta2 = 0.8},
    AdamWOptions{.beta1 = 0.7, .beta2 = 0.8},
};

// Whether all moments are 0. Fails the test if one is nonzero and subnormal, or close to that range.
template <class T>
bool all_zero(Optimizer& optimizer) {
  bool zero = true;
  for (const auto& moment : optimizer.moments()) {
    for (const T x : moment.values.template values<T>()) {
      if (x == 0) continue;
      zero = false;
      if (!(std::abs(x) >= 50 * std::numeric_limits<T>::min())) FAIL("a moment is " << x);
    }
  }
  return zero;
}

template <class T>
void require_moments_end_in_zero(const OptimizerOptions& options, int max_steps) {
  ParameterStore store(dtype_of<T>());
  fill(store);
  const auto optimizer = make(store, options);
  for (std::uint64_t s = 0; s < 3; ++s) {
    draw_gradients<T>(store, s);
    optimizer->step(0.01);
  }
  REQUIRE_FALSE(all_zero<T>(*optimizer));
  int steps = 0;
  while (steps < max_steps && !all_zero<T>(*optimizer)) {
    optimizer->step(0);
    ++steps;
  }
  REQUIRE(steps > 100);
  REQUIRE(steps < max_steps);
}

}  // namespace

TEST_CASE("without a gradient, moments decay to exactly 0 on every target") {
  for (const std::string& target : kernels::available_targets()) {
    kernels::force_target(target);
    for (std::size_t i = 0; i < kWithMoments.size(); ++i) {
      INFO(target << ", optimizer " << i);
      require_moments_end_in_zero<float>(kWithMoments[i], 2000);
      require_moments_end_in_zero<double>(kWithMoments[i], 4000);
    }
  }
  kernels::force_target("");
}

TEST_CASE("in float32, first moments below 1e-30 and second moments below 1e-36 become 0, and NaN stays NaN") {
  struct Case {
    float before;
    bool first, second;  // whether each moment is kept
  };
  for (const auto& [before, first, second] :
       {Case{1.2e-30F, true, true}, Case{-1.2e-30F, true, true}, Case{1.05e-30F, false, true},
        Case{1.2e-36F, false, true}, Case{1.05e-36F, false, false}, Case{1e-44F, false, false}}) {
    ParameterStore store;
    store.add("weight", {5}, init::constant(1));
    store.seal();
    AdamW optimizer(store, {.beta1 = 0.9, .beta2 = 0.9});
    for (auto& moment : optimizer.moments()) std::ranges::fill(moment.values.values<float>(), std::abs(before));
    optimizer.moments()[0].values.data<float>()[3] = before;
    optimizer.moments()[0].values.data<float>()[4] = std::numeric_limits<float>::quiet_NaN();
    optimizer.step(0.1);
    INFO(before);
    REQUIRE((optimizer.moments()[0].values.at(3) != 0) == first);
    REQUIRE((optimizer.moments()[1].values.at(3) != 0) == second);
    REQUIRE(std::isnan(optimizer.moments()[0].values.at(4)));
  }
}

TEST_CASE("with a tiny eps, tiny gradients move the values as far as large ones") {
  ParameterStore store;
  Parameter& weight = store.add("weight", {8}, init::constant(0));
  store.seal();
  Adam optimizer(store, {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-15});
  for (int s = 0; s < 10; ++s) {
    store.clear_gradients();
    Tensor gradients = full({store.trainable().size()}, DType::float32, 1e-14);
    store.set_gradients(gradients);
    optimizer.step(0.01);
  }
  REQUIRE(weight.value().at(0) == Approx(-0.1 / 1.1).epsilon(0.01));  // eps is a tenth of the root of the second moment
}

TEST_CASE("a run resumed while its moments decay has the bits of one that was never stopped") {
  for (std::size_t i = 0; i < kWithMoments.size(); ++i) {
    INFO("optimizer " << i);
    ParameterStore straight, resumed;
    fill(straight);
    fill(resumed);
    const auto one = make(straight, kWithMoments[i]), two = make(resumed, kWithMoments[i]);
    draw_gradients<float>(straight, 1);
    one->step(0.01);
    for (int s = 0; s < 650; ++s) one->step(0.01);  // 0.9^650 ≈ 2e-30: some moments are about to be flushed
    std::ranges::copy(straight.values().values<float>(), resumed.values().data<float>());
    for (std::size_t k = 0; k < one->moments().size(); ++k) {
      std::ranges::copy(one->moments()[k].values.values<float>(), two->moments()[k].values.data<float>());
    }
    two->set_steps(one->steps());
    for (int s = 0; s < 100; ++s) {
      one->step(0.01);
      two->step(0.01);
    }
    REQUIRE(same_bits(straight.values(), resumed.values()));
    for (std::size_t k = 0; k < one->moments().size(); ++k) {
      REQUIRE(same_bits(one->moments()[k].values, two->moments()[k].values));
    }
  }
}
