// Whole models with products in bfloat16: the gradient against that in float32, and the rounded copy of the weights.
#include <cmath>

#include "tests/catch.h"
#include "tests/train/every_small_model.h"
#include "train/loop/estimate.h"

using namespace maki;
using namespace maki::tests;

namespace {

// The loss of the first step, and its gradient: the first moment of Adam after it, which is the gradient times 1 -
// beta1.
struct FirstStep {
  FirstStep(Config config, Precision precision) {
    config.precision = precision;
    config.optimizer = "adamw";
    config.grad_clip = 0;
    SmallTrainer small(config);
    loss = small.trainer.step()->loss;
    const Moment& first = small.trainer.optimizer().moments().front();
    REQUIRE(first.may_be_negative);
    for (std::int64_t i = 0; i < first.values.numel(); ++i) gradient.push_back(first.values.at(i));
  }
  double loss;
  std::vector<double> gradient;
};

double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Requires that the gradient in both precisions has nearly the same direction and length, but not the same bits.
void require_near(const Config& config) {
  const FirstStep exact(config, Precision::float32), near(config, Precision::bfloat16);
  REQUIRE(near.gradient.size() == exact.gradient.size());
  const double squares = product(exact.gradient, exact.gradient);
  const double near_squares = product(near.gradient, near.gradient);
  const double cosine = product(near.gradient, exact.gradient) / std::sqrt(squares * near_squares);
  const double ratio = std::sqrt(near_squares / squares);
  REQUIRE(cosine > 0.9999);
  REQUIRE(std::abs(ratio - 1) < 0.01);
  REQUIRE(std::abs(near.loss / exact.loss - 1) < 0.001);
  REQUIRE(near.gradient != exact.gradient);
}

}  // namespace

TEST_CASE("the gradient of every model in bfloat16 has the direction and the length of that in float32") {
  for (const SmallModel& small : every_small_model()) {
    INFO(small.name);
    require_near(small.config);
  }
}

TEST_CASE("the gradient of every preset in bfloat16 has the direction and the length of that in float32") {
  for (const std::string& preset : preset_names()) {
    INFO(preset);
    Config config;
    apply_preset(config, preset);
    config.batch_size = 2;
    fill_open_fields(config);
    require_near(config);
  }
}

TEST_CASE("training in bfloat16 has the same bits with a rounded copy of the weights and without one") {
  for (const SmallModel& small : every_small_model()) {
    for (const char* const optimizer : {"adamw", "muon"}) {
      INFO(small.name << " " << optimizer);
      Config config = small.config;
      config.precision = Precision::bfloat16;
      config.optimizer = optimizer;
      config.grad_accum = 2;
      SmallTrainer with(config), without(config);
      with.trainer.store().keep_rounded_values();
      for (int step = 0; step < 3; ++step) {
        without.trainer.store().mark_changed();  // as after a resume
        const double loss = with.trainer.step()->loss;
        REQUIRE(without.trainer.step()->loss == loss);
        REQUIRE(with.trainer.store().rounded_values() != nullptr);
      }
      REQUIRE(same_bits(with.trainer.store().values(), without.trainer.store().values()));
    }
  }
}

TEST_CASE("a trainer keeps a rounded copy where that pays, and the memory estimate counts it") {
  for (const Precision precision : kPrecisions) {
    INFO(to_string(precision));
    Config config = small_model_config("gpt");
    config.precision = precision;
    SmallTrainer trained(config);
    trained.trainer.step();
    const ParameterStore& store = trained.trainer.store();
    const bool keeps = keeps_rounded_weights(config);
    const MemoryNeed need = memory_needed(config, VocabSizes(trained.trainer.task().vocab_sizes()));
    REQUIRE((store.rounded_values() != nullptr) == keeps);
    REQUIRE(need.rounded_values == (keeps ? store.rounded_values_bytes() : 0));
    REQUIRE(need.total() == need.values + need.rounded_values + need.gradients + need.moments + need.activations);
    if (config.precision == Precision::float32) REQUIRE_FALSE(keeps);
  }
}
