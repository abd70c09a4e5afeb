// The learning rates of plans.
#include "tests/catch.h"
#include "tests/train/every_small_model.h"
#include "tests/train/made_up_machine.h"
#include "tests/train/small_data.h"
#include "train/loop/language_model_task.h"
#include "train/run/config/configured_optimizer.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("a plan's learning rate is lower for a wider network") {
  const auto rate = [](const char* width) {
    return plan_of(with(request_for(1'000'000, 600), {{"n_embd", width}, {"n_head", "4"}})).config.learning_rate;
  };
  REQUIRE(rate("32") == 8e-3);  // the highest
  REQUIRE(rate("64") == 8e-3);
  REQUIRE(rate("128") == 4e-3);
  REQUIRE(rate("256") == 2e-3);
}

TEST_CASE(
    "a learning rate below the min_lr of runs without a plan is planned, as is a min_lr above their learning rate") {
  struct : Machine {
    StepTime time_step(const Config& c, const VocabSizes& vocab) override {
      lr_phases(c);  // throws, as a trainer does
      return Machine::time_step(c, vocab);
    }
  } machine;
  const PlanRequest request = request_for(1'000'000, 60);
  const Config low = make_plan(with(request, {{"learning_rate", "0.00005"}}), machine).config;
  REQUIRE(low.learning_rate == 0.00005);
  REQUIRE(low.min_lr == 0);
  const Config high = make_plan(with(request, {{"min_lr", "0.005"}}), machine).config;
  REQUIRE(high.min_lr == 0.005);
  REQUIRE(high.learning_rate > high.min_lr);
  const Config constant = with_planned_schedule(with(request, {{"schedule", "constant"}}));
  REQUIRE(constant.schedule == "constant");
  REQUIRE(constant.min_lr == request.config.min_lr);
}

TEST_CASE("weights that have learned already are planned small steps, unless adapters learn on top of them") {
  Config config = small_model_config("gpt");
  config.val_fraction = 0;
  const Dataset data = dataset_of(seeded_text(400, "abcdef"), config);
  const LanguageModelTask task(config, data);
  const auto planned = [&](const PlanRequest& request) {
    Machine machine;
    return plan_length(request, task, machine).config;
  };
  PlanRequest request{.text = {}, .seconds = 60, .config = config};
  const Config first = planned(request);
  REQUIRE(first.learning_rate == config.learning_rate);
  REQUIRE(first.schedule == "linear");
  REQUIRE(first.min_lr == 0);
  request.has_weights = true;
  REQUIRE(planned(request).learning_rate == 3e-4);
  REQUIRE(planned(with(request, {{"learning_rate", "0.002"}})).learning_rate == 0.002);
  REQUIRE(planned(request).muon_lr == config.muon_lr);
  const Config muon = planned(with(request, {{"optimizer", "muon"}}));
  REQUIRE(muon.learning_rate == 3e-4);
  REQUIRE(muon.muon_lr == 0.006);
  REQUIRE(planned(with(request, {{"optimizer", "muon"}, {"muon_lr", "0.01"}})).muon_lr == 0.01);
  request.config.lora_rank = 2;
  REQUIRE(planned(request).learning_rate == config.learning_rate);
}
