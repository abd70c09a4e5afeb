// Frozen parameters: which ones the patterns of `freeze` select, and that training changes the others alone.
#include <rapidcheck.h>
#include <set>

#include "data/text/glob.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/tensors.h"
#include "tests/train/every_small_model.h"
#include "train/loop/estimate.h"
#include "train/run/config/trained_parameters.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Every second parameter that would be trained, by name.
std::vector<std::string> every_second(const Trainer& trainer) {
  std::vector<std::string> names;
  bool wanted = true;
  for (const auto& parameter : const_cast<Trainer&>(trainer).store().parameters()) {
    if (!parameter->trainable()) continue;
    if (wanted) names.push_back(parameter->name());
    wanted = !wanted;
  }
  return names;
}

Config with_sgd(Config config) {
  config.optimizer = "sgd";
  config.grad_clip = 0;  // the norm of the gradient is that of the trained parameters
  return config;
}

}  // namespace

TEST_CASE("frozen parameters keep the bits of their initial values and others are trained as without freezing") {
  for (const SmallModel& small : every_small_model()) {
    INFO(small.name);
    const Config config = with_sgd(small.config);
    SmallTrainer plain(config);
    Config freezing = config;
    freezing.freeze = every_second(plain.trainer);
    SmallTrainer frozen(freezing);
    const std::set<std::string> names(freezing.freeze.begin(), freezing.freeze.end());
    std::vector<Tensor> before;
    for (const auto& parameter : frozen.trainer.store().parameters()) {
      REQUIRE(same_bits(parameter->value(), plain.trainer.store().find(parameter->name()).value()));
      before.push_back(copy_of_value(*parameter));
    }
    plain.trainer.step();
    frozen.trainer.step();
    std::size_t i = 0, changed = 0;
    for (const auto& parameter : frozen.trainer.store().parameters()) {
      INFO(parameter->name());
      const bool same = same_bits(parameter->value(), before[i++]);
      if (names.contains(parameter->name())) {
        REQUIRE(same);
        REQUIRE(parameter->group() == ParamGroup::frozen);
      } else {
        REQUIRE(same_bits(parameter->value(), plain.trainer.store().find(parameter->name()).value()));
        changed += same ? 0 : 1;
      }
    }
    REQUIRE(changed > 0);
  }
}

TEST_CASE("frozen parameters have no moments, no gradients, and no place in the memory estimate") {
  for (const char* const optimizer : {"sgd", "adamw", "muon"}) {
    INFO(optimizer);
    Config config = small_model_config("gpt");
    config.optimizer = optimizer;
    config.momentum = 0.9;
    config.freeze = {"h.0.*", "wte.*", "wpe.*"};
    SmallTrainer trained(config);
    trained.trainer.step();
    ParameterStore& store = trained.trainer.store();
    std::int64_t all = 0, elements = 0;
    for (const auto& parameter : store.parameters()) {
      all += parameter->shape().numel();
      elements += parameter->trainable() ? parameter->shape().numel() : 0;
    }
    REQUIRE(elements < all / 2);
    REQUIRE(store.gradients().numel() == store.trainable().size());
    for (const Moment& moment : trained.trainer.optimizer().moments()) {
      REQUIRE(moment.values.numel() <= store.trainable().size());
      for (const auto& part : moment.parts) REQUIRE(part.parameter->trainable());
    }
    const MemoryNeed need = memory_needed(config, VocabSizes(trained.trainer.task().vocab_sizes()));
    REQUIRE(need.parameters == all);
    REQUIRE(need.trained == elements);
    REQUIRE(need.gradients == store.trainable().size() * size_of(store.dtype()));
  }
}

TEST_CASE("a pattern that matches no parameter is refused with the most similar name, and so is freezing everything") {
  const auto said = [](std::vector<std::string> patterns) {
    return error_message<Error>([&] {
      Config config = small_model_config("gpt");
      config.freeze = std::move(patterns);
      validate(config);
      const SmallTrainer trainer(config);
    });
  };
  REQUIRE(said({"wte.wieght"}) ==
          "freeze: every pattern must match a parameter; got wte.wieght; the most similar name is wte.weight");
  REQUIRE(contains(said({"wte.*", "h.9.attn.c_attn.*"}), "got h.9.attn.c_attn.*; the most similar name is h.0.attn."));
  REQUIRE(contains(said({"*.c_atn.bias"}), "the most similar name is h.0.attn.c_attn.bias"));
  REQUIRE(contains(said({"*"}), "freeze: the patterns match all parameters, so nothing would be trained; omit one of"));
  REQUIRE(contains(said({""}), "freeze: a pattern must have 1 to 128 bytes; got an empty one"));
  REQUIRE(contains(said({std::string(129, '*')}), "freeze: a pattern must have 1 to 128 bytes; got ***"));
  REQUIRE(contains(said(std::vector<std::string>(65, "wte.*")), "freeze: must be at most 64 patterns; got 65"));
  REQUIRE(contains(said({"\xff*"}), "freeze: must be valid UTF-8"));
}

TEST_CASE("the most similar name matches the pattern if any name does") {
  const std::vector<std::string> names = {
      "wte.weight",           "wpe.weight",           "h.0.ln_1.weight", "h.0.attn.c_attn.weight",
      "h.1.attn.c_attn.bias", "h.10.mlp.c_fc.weight", "ln_f.bias"};
  REQUIRE(rc::check("glob patterns", [&] {
    std::string pattern = *rc::gen::elementOf(names);
    const auto edits = *rc::gen::inRange(0, 4);
    for (int i = 0; i < edits; ++i) {
      const auto at = *rc::gen::inRange<std::size_t>(0, pattern.size());
      const auto end = *rc::gen::inRange<std::size_t>(at, pattern.size());
      pattern = pattern.substr(0, at) + (*rc::gen::arbitrary<bool>() ? "*" : "?") + pattern.substr(end);
    }
    const bool any = std::ranges::any_of(names, [&](const std::string& name) { return matches_glob(pattern, name); });
    if (any) RC_ASSERT(matches_glob(pattern, most_similar(pattern, names)));
  }));
}

TEST_CASE("patterns are fields of the configuration that are written and read back") {
  Config config = small_model_config("gpt");
  config.freeze = {"wte.*", "h.[01].*"};
  const std::string text = training_toml(config);
  REQUIRE(contains(text, "freeze = ['wte.*', 'h.[01].*']\n") + contains(text, "freeze = [\"wte.*\", \"h.[01].*\"]\n") ==
          1);
  REQUIRE(read_training_toml(text).freeze == config.freeze);
  REQUIRE(training_toml(read_training_toml(text)) == text);
}
