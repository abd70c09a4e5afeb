// The optimizers that have a name.
#include "optim/make_optimizer.h"

#include "tests/catch.h"
#include "tests/optim/small_store.h"

using namespace maki;
using namespace maki::tests;

namespace {

const HyperParameters kHyper{.beta1 = 0.8, .beta2 = 0.95, .momentum = 0.5, .nesterov = true, .weight_decay = 0.1};

OptimizerOptions options_of(const std::string& name) {
  if (name == "adamw") return AdamWOptions{.beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1};
  if (name == "adam") return AdamOptions{.beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1};
  return SgdOptions{.momentum = 0.5, .nesterov = true, .weight_decay = 0.1};
}

Tensor values_after(ParameterStore& store, Optimizer& optimizer) {
  for (std::uint64_t s = 0; s < 3; ++s) {
    draw_gradients<float>(store, s);
    optimizer.step(0.01);
  }
  return store.values();
}

}  // namespace

TEST_CASE("an optimizer made by its name reads each of its hyper-parameters") {
  REQUIRE(optimizer_names() == std::vector<std::string>{"adamw", "adam", "sgd"});
  for (const std::string& name : optimizer_names()) {
    INFO(name);
    ParameterStore named, direct;
    fill(named);
    fill(direct);
    REQUIRE(same_bits(values_after(named, *make_optimizer(name, kHyper, named)),
                      values_after(direct, *make(direct, options_of(name)))));
    REQUIRE_THAT(optimizer_help(), ContainsSubstring(name + ": "));
  }
}

TEST_CASE("a name that no optimizer has is refused, and so are hyper-parameters that are out of range") {
  ParameterStore store;
  REQUIRE_THROWS_WITH(make_optimizer("adamv", kHyper, store), ContainsSubstring("adamw, adam, sgd; got adamv"));
  REQUIRE_THROWS_WITH(make_optimizer("sgd", {.momentum = 1}, store), ContainsSubstring("momentum"));
  REQUIRE_THROWS_WITH(make_optimizer("adamw", {.beta1 = 1}, store), ContainsSubstring("adamw: beta1"));
  REQUIRE_THROWS_WITH(make_optimizer("adam", {.beta2 = -1}, store), ContainsSubstring("adam: beta1 and beta2"));
}
