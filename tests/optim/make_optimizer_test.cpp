// The optimizers that have a name.
#include "optim/make_optimizer.h"

#include "tests/catch.h"
#include "tests/optim/small_store.h"

using namespace maki;
using namespace maki::tests;

namespace {

const HyperParameters kHyper{.beta1 = 0.8,
                             .beta2 = 0.95,
                             .eps = 1e-3,
                             .momentum = 0.5,
                             .nesterov = true,
                             .matrix_factor = 3,
                             .weight_decay = 0.1};

OptimizerOptions options_of(const std::string& name) {
  if (name == "adamw") return AdamWOptions{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};
  if (name == "adam") return AdamOptions{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};
  if (name == "muon")
    return MuonOptions{
        .matrix_factor = 3, .momentum = 0.5, .weight_decay = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3};
  return SgdOptions{.momentum = 0.5, .nesterov = true, .weight_decay = 0.1};
}

Tensor values_after(ParameterStore& store, Optimizer& optimizer) {
  for (std::uint64_t s = 0; s < 3; ++s) {
    draw_gradients<float>(store, s);
    optimizer.step(0.01);
  }
  return store.values();
}

OptimizerOptions default_options_of(const std::string& name) {
  if (name == "adamw") return AdamWOptions{};
  if (name == "adam") return AdamOptions{};
  if (name == "muon") return MuonOptions{};
  return SgdOptions{};
}

void require_same_steps(const std::string& name, const HyperParameters& hyper, const OptimizerOptions& options) {
  INFO(name);
  ParameterStore named, direct;
  fill(named);
  fill(direct);
  REQUIRE(same_bits(values_after(named, *make_optimizer(name, hyper, named)),
                    values_after(direct, *make(direct, options))));
}

}  // namespace

TEST_CASE("an optimizer made by its name reads each of its hyper-parameters") {
  REQUIRE(optimizer_names() == std::vector<std::string>{"adamw", "adam", "sgd", "muon"});
  for (const std::string& name : optimizer_names()) {
    require_same_steps(name, kHyper, options_of(name));
    REQUIRE_THAT(optimizer_help(), ContainsSubstring(name + ": "));
  }
}

TEST_CASE("hyper-parameters that are not given have the defaults of the optimizer, and explicit values win") {
  for (const std::string& name : optimizer_names()) require_same_steps(name, {}, default_options_of(name));
  require_same_steps("adamw", {.weight_decay = 0}, AdamWOptions{.weight_decay = 0});
  require_same_steps("adamw", {.beta2 = 0.5}, AdamWOptions{.beta2 = 0.5});
  require_same_steps("adam", {.momentum = 0.5}, AdamOptions{});  // adam has no momentum
}

TEST_CASE("a name that no optimizer has is refused, and so are hyper-parameters that are out of range") {
  ParameterStore store;
  REQUIRE_THROWS_WITH(make_optimizer("adamv", kHyper, store), ContainsSubstring("adamw, adam, sgd, muon; got adamv"));
  REQUIRE_THROWS_WITH(make_optimizer("sgd", {.momentum = 1}, store), ContainsSubstring("momentum"));
  REQUIRE_THROWS_WITH(make_optimizer("adamw", {.beta1 = 1}, store), ContainsSubstring("adamw: beta1"));
  REQUIRE_THROWS_WITH(make_optimizer("adamw", {.eps = 0}, store), ContainsSubstring("adamw: eps"));
  REQUIRE_THROWS_WITH(make_optimizer("adam", {.beta2 = -1}, store), ContainsSubstring("adam: beta1 and beta2"));
}
