// The copy of the weights that is rounded to bfloat16: when there is one, and that it agrees with the values after a
// step of any optimizer. What reads it is tested in ops/precision_test.cpp.
#include <bit>
#include <cmath>
#include <span>

#include "autograd/core/parallel.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/kernels/gemm_case.h"
#include "tests/kernels/gemm_chain.h"
#include "tests/kernels/targets.h"
#include "tests/optim/small_store.h"

using namespace maki;
using namespace maki::tests;

namespace {

// A NaN may become any quiet NaN, and a zero may lose its sign.
bool is_rounding_of(BFloat16 rounded, float value) {
  const float got = to_float(rounded), expected = kernels::bf16_nearest(value);
  return std::isnan(expected) ? std::isnan(got) && (rounded.bits & 0x40) != 0 : got == expected;
}

void require_rounded(const ParameterStore& store) {
  const BFloat16* const rounded = store.rounded_values();
  REQUIRE(rounded != nullptr);
  const std::span<const float> values = store.values().values<float>();
  const FlatRange range = store.range(ParamGroup::decay);
  REQUIRE(range.size() > 0);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < range.size(); ++i) {
    wrong += is_rounding_of(rounded[i], values[static_cast<std::size_t>(i)]) ? 0 : 1;
  }
  REQUIRE(wrong == 0);
}

// Numbers that need care: halfway between two others, subnormal, beyond the largest, infinite, NaN.
void set_special_values(ParameterStore& store, const char* parameter) {
  const std::vector<std::uint32_t> bits = {0x3F808000, 0x3F818000, 0x3F808001, 0x00000001, 0x807FFFFF,
                                           0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7F800001};
  float* const x = store.values().data<float>() + store.find(parameter).offset();
  for (std::size_t i = 0; i < bits.size(); ++i) x[i] = std::bit_cast<float>(bits[i]);
  store.mark_changed();
}

// An optimizer that knows nothing of the copy.
class AddGradients : public FlatOptimizer {
 public:
  explicit AddGradients(ParameterStore& store) : FlatOptimizer(store, {}) {}

 private:
  void update_group(const OptimizerStep& /*step*/, FlatUpdate& group) override {
    for (std::int64_t i = 0; i < group.value.numel(); ++i) {
      group.value.data<float>()[i] += group.gradient.data<float>()[i];
    }
  }
};

}  // namespace

TEST_CASE("a step of every optimizer rounds the weights that it changes, on every target") {
  std::vector<OptimizerOptions> all = kAllOptimizers;
  all.emplace_back(MuonOptions{});
  on_every_target([&] {
    for (std::size_t kind = 0; kind < all.size(); ++kind) {
      INFO("optimizer " << kind);
      ParameterStore store;
      fill(store);
      const auto optimizer = make(store, all[kind]);
      store.keep_rounded_values();
      REQUIRE(store.rounded_values() == nullptr);
      draw_gradients<float>(store, 1);
      optimizer->step(0.01);
      require_rounded(store);
      set_special_values(store, "large");
      REQUIRE(store.rounded_values() == nullptr);
      optimizer->step(0);
      require_rounded(store);
    }
  });
}

TEST_CASE("a rounded copy that is stored past the caches agrees with the values, with any number of threads") {
  const kernels::Streaming streaming;
  const int before = threads();
  for (const int n : {1, 2, 4}) {
    set_threads(n);
    ParameterStore store;
    store.add("large", {1100, 1000}, init::normal(1));  // 2.2 MB rounded: more than kStreamedBytes
    store.add("small", {3, 5}, init::normal(1));        // ends half a cache line later
    store.seal(1);
    store.keep_rounded_values();
    AdamW optimizer(store);
    optimizer.step(0.1);
    require_rounded(store);
  }
  set_threads(before);
}

TEST_CASE("the copy agrees with the values after a step of an optimizer that knows nothing of it") {
  ParameterStore store;
  fill(store);
  store.keep_rounded_values();
  AddGradients optimizer(store);
  for (std::uint64_t step = 0; step < 2; ++step) {
    draw_gradients<float>(store, step);
    optimizer.step(0.1);
    require_rounded(store);
  }
}

TEST_CASE("matrices alone have rounded values, until the values change") {
  ParameterStore store;
  REQUIRE_THROWS_WITH(store.keep_rounded_values(), ContainsSubstring("not sealed"));
  fill(store);
  Sgd optimizer(store);
  optimizer.step(0.1);
  REQUIRE(store.rounded_values() == nullptr);
  REQUIRE(store.find("large").rounded() == nullptr);
  store.keep_rounded_values();
  REQUIRE(store.rounded_values() == nullptr);
  optimizer.step(0.1);
  const BFloat16* const rounded = store.rounded_values();
  REQUIRE(rounded != nullptr);
  REQUIRE(store.rounded_values_bytes() == 2 * store.range(ParamGroup::decay).size());
  std::int64_t matrices = 0;
  for (const auto& parameter : store.parameters()) {
    const bool is_matrix = parameter->group() == ParamGroup::decay;
    REQUIRE(parameter->rounded() == (is_matrix ? rounded + parameter->offset() : nullptr));
    matrices += is_matrix ? 1 : 0;
  }
  REQUIRE(matrices == 7);
  store.mark_changed();
  REQUIRE(store.rounded_values() == nullptr);
  REQUIRE(store.find("large").rounded() == nullptr);

  ParameterStore wide(DType::float64);
  fill(wide);
  REQUIRE_THROWS_WITH(wide.keep_rounded_values(),
                      "parameters: only float32 values can have a rounded copy; these are float64");
}
