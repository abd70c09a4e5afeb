// Optimizers that see one parameter at a time: what they see, where their moments are, and that their state is
// complete.
#include "optim/parameter_optimizer.h"

#include <map>
#include <string>

#include "tests/catch.h"
#include "tests/optim/matrix_and_vector_optimizer.h"
#include "tests/optim/small_store.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Adam, one parameter at a time.
class SlowAdam : public ParameterOptimizer {
 public:
  SlowAdam(ParameterStore& store, const AdamOptions& options) : ParameterOptimizer(store), options_(options) {}

 private:
  std::vector<MomentSpec> moments_of(const Parameter& p) const override {
    return {{"exp_avg", p.shape()}, {"exp_avg_sq", p.shape(), false}};
  }
  void update_parameter(const OptimizerStep& step, ParameterUpdate& p) override {
    update_adam(options_, true, p.decay(), step, p.gradient, p.value, p.moment("exp_avg"), p.moment("exp_avg_sq"));
  }
  AdamOptions options_;
};

// An optimizer whose declarations and update are given by a test.
class Scripted : public ParameterOptimizer {
 public:
  explicit Scripted(ParameterStore& store) : ParameterOptimizer(store) {}
  std::map<std::string, std::vector<MomentSpec>> specs;
  std::function<void(ParameterUpdate&)> rule = [](ParameterUpdate&) {};

 private:
  std::vector<MomentSpec> moments_of(const Parameter& p) const override {
    const auto found = specs.find(p.name());
    return found == specs.end() ? std::vector<MomentSpec>{} : found->second;
  }
  void update_parameter(const OptimizerStep&, ParameterUpdate& p) override { rule(p); }
};

void add_three(ParameterStore& store) {
  store.add("vector", {3}, init::constant(1));
  store.add("matrix", {5, 7}, init::constant(1));
  store.add("fixed", {2, 2}, init::constant(1), ParamGroup::frozen);
}

}  // namespace

TEST_CASE("Adam one parameter at a time has the bits of the fused pass, moments included") {
  ParameterStore flat, single;
  fill(flat);
  fill(single);
  AdamW fused(flat, {.beta2 = 0.95, .weight_decay = 0.1});
  SlowAdam slow(single, {.beta2 = 0.95, .weight_decay = 0.1});
  for (std::uint64_t s = 0; s < 4; ++s) {
    draw_gradients<float>(flat, s);
    draw_gradients<float>(single, s);
    fused.step(0.01, 0.5);
    slow.step(0.01, 0.5);
  }
  REQUIRE(same_bits(flat.values(), single.values()));
  REQUIRE(slow.moments().size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    REQUIRE(slow.moments()[i].name == fused.moments()[i].name);
    REQUIRE(same_bits(slow.moments()[i].values, fused.moments()[i].values));
  }
}

TEST_CASE("an optimizer sees every trainable parameter once per step, in the order of the flat values") {
  ParameterStore store;
  add_three(store);
  store.seal();
  Scripted optimizer(store);
  optimizer.specs["vector"] = {{"row", {4}}};
  std::vector<std::string> seen;
  optimizer.rule = [&](ParameterUpdate& p) {
    seen.push_back(p.parameter.name());
    REQUIRE(p.value.shape() == p.parameter.shape());
    REQUIRE(p.gradient.shape() == p.parameter.shape());
    REQUIRE(p.gradient.at(0) == 0);  // not written, so it counts as zero
    REQUIRE(p.decay() == (p.parameter.name() == "matrix"));
    p.value.data<float>()[0] = 5;
    if (p.parameter.name() == "vector") REQUIRE(p.moment("row").shape() == Shape{4});
  };
  store.gradients().data<float>()[0] = 3;
  store.clear_gradients();
  optimizer.step(0.1);
  REQUIRE(seen == std::vector<std::string>{"matrix", "vector"});
  REQUIRE(store.find("matrix").value().at(0) == 5);
  REQUIRE(store.find("vector").value().at(0) == 5);
  REQUIRE(store.find("fixed").value().at(0) == 1);
  optimizer.rule = [](ParameterUpdate& p) { p.moment("row"); };
  REQUIRE_THROWS_WITH(optimizer.step(0.1), ContainsSubstring("parameter matrix has no moment row"));
}

TEST_CASE("moments are laid out by name, in the order of declaration, each part at a multiple of 64 bytes") {
  ParameterStore store;  // neither laid out nor sealed: no memory is allocated
  add_three(store);
  Scripted optimizer(store);
  optimizer.specs["matrix"] = {{"momentum", {5, 7}}, {"rows", {5}, false}};
  optimizer.specs["vector"] = {{"exp_avg", {3}}, {"rows", {1}, false}, {"momentum", {3}}};
  const std::vector<MomentLayout> layouts = optimizer.moment_layouts();
  REQUIRE(layouts.size() == 3);
  REQUIRE(layouts[0].name == "momentum");
  REQUIRE(layouts[0].may_be_negative);
  REQUIRE(layouts[0].parts.size() == 2);
  REQUIRE(layouts[0].parts[1].parameter->name() == "vector");
  REQUIRE(layouts[0].parts[1].offset == 48);  // 35 elements, padded to 3 · 64 bytes
  REQUIRE(layouts[0].length == 64);
  REQUIRE(layouts[1].name == "rows");
  REQUIRE_FALSE(layouts[1].may_be_negative);
  REQUIRE(layouts[1].parts[1].offset == 16);
  REQUIRE(layouts[2].name == "exp_avg");
  REQUIRE(layouts[2].parts[0].shape == Shape{3});
  REQUIRE(layouts[2].length == 16);
  REQUIRE_THROWS_WITH(optimizer.moments(), ContainsSubstring("seal()"));
  store.seal();
  for (std::size_t i = 0; i < 3; ++i) REQUIRE(optimizer.moments().at(i).values.numel() == layouts[i].length);
}

TEST_CASE("declarations that contradict each other are rejected, naming the parameter") {
  ParameterStore store;
  add_three(store);
  Scripted optimizer(store);
  optimizer.specs["matrix"] = {{"m", {3}}, {"m", {3}}};
  REQUIRE_THROWS_WITH(optimizer.moment_layouts(), ContainsSubstring("matrix declares m twice"));
  optimizer.specs["matrix"] = {{"m", {3}}};
  optimizer.specs["vector"] = {{"m", {3}, false}};
  REQUIRE_THROWS_WITH(optimizer.moment_layouts(), ContainsSubstring("parameter vector does not"));
}

TEST_CASE("matrices and vectors follow rules of their own") {
  ParameterStore store(DType::float64);
  add_three(store);
  store.seal();
  MatrixAndVectorOptimizer optimizer(store);
  for (double& g : store.gradients().values<double>()) g = -2;
  optimizer.step(0.1, 0.5);
  REQUIRE(store.find("matrix").value().at(34) == Approx(1 * (1 - 0.1 * 0.1) + 0.1));
  REQUIRE(store.find("vector").value().at(2) == Approx(1 + 0.1));
  const std::vector<Moment>& moments = optimizer.moments();
  REQUIRE(moments.size() == 3);
  REQUIRE(moments[0].values.at(34) == Approx(-0.01));  // exp_avg of the matrix
  REQUIRE(moments[0].values.at(40) == Approx(-0.1));   // exp_avg of the vector, at the next multiple of 64 bytes
  REQUIRE(moments[1].values.at(4) == Approx(0.01));    // row_norm
  REQUIRE(moments[2].values.at(0) == Approx(0.001));   // exp_avg_sq
}

TEST_CASE("a parameter without elements is updated, and has moments without elements") {
  ParameterStore store;
  store.add("matrix", {2, 3}, init::constant(1), {}, 1);
  store.add("empty", {0}, init::constant(1));
  store.add("vector", {3}, init::constant(1));
  store.seal();
  Muon optimizer(store, MuonOptions{});
  for (float& g : store.gradients().values<float>()) g = 2;
  REQUIRE_NOTHROW(optimizer.step(0.1));
  REQUIRE(store.find("matrix").value().at(5) != 1);
  REQUIRE(store.find("vector").value().at(2) != 1);
}
