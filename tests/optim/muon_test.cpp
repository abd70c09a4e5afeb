// Muon against PyTorch's, and what is promised of every optimizer.
#include "optim/muon.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "autograd/core/parallel.h"
#include "tests/catch.h"
#include "tests/fixture.h"
#include "tests/optim/small_store.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Matrices that are wide, tall, stacked, large enough for AMX, of one row or column, or so many that threads have some
// each; and parameters that are none.
void fill_matrices(ParameterStore& store) {
  const auto add = [&](const char* name, const Shape& shape, std::int64_t matrices) {
    store.add(name, shape, init::normal(1), {}, matrices);
  };
  add("bias", {7}, 0);
  add("wide", {5, 17}, 1);
  add("tall", {33, 3}, 1);
  add("packed", {3 * 9, 7}, 3);
  add("table", {6, 4}, 0);
  add("row", {1, 5}, 1);
  add("column", {5, 1}, 1);
  add("large", {2 * 128, 160}, 2);
  add("many", {36 * 4, 3}, 36);
  store.add("fixed", {3, 3}, init::normal(1), ParamGroup::frozen, 1);
  store.seal(7);
}

void take_steps(ParameterStore& store, Optimizer& optimizer, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t s = first; s < last; ++s) {
    dispatch(store.dtype(), [&]<class T>() { draw_gradients<T>(store, s); });
    optimizer.step(0.001, 0.5);
  }
}

}  // namespace

TEST_CASE("three steps of Muon agree with PyTorch's") {
  const Fixture fixture = read_fixture("muon");
  for (const std::string name : {"tall", "wide", "square"}) {
    INFO(name);
    ParameterStore store(DType::float64);
    const Tensor& before = fixture[name + ".before"];
    Parameter& weight = store.add("weight", before.shape(), init::values(before), {}, 1);
    store.seal();
    Muon optimizer(store, {.matrix_factor = 4, .momentum = 0.9, .weight_decay = 0.1});
    for (int step = 0; step < 3; ++step) {
      const Tensor& gradient = fixture[name + ".gradient." + std::to_string(step)];
      std::ranges::copy(gradient.values<double>(), store.gradients().data<double>());
      optimizer.step(0.02 / 4);
    }
    const Tensor &after = fixture[name + ".after"], &momentum = fixture[name + ".momentum"];
    REQUIRE(optimizer.moments().size() == 1);
    REQUIRE(optimizer.moments()[0].name == "momentum");
    for (std::int64_t i = 0; i < after.numel(); ++i) {
      REQUIRE(weight.value().at(i) == Approx(after.at(i)).epsilon(1e-9).margin(1e-12));
      REQUIRE(optimizer.moments()[0].values.at(i) == Approx(momentum.at(i)).epsilon(1e-12));
    }
  }
}

TEST_CASE("stacked matrices are updated as if each were a parameter of its own") {
  ParameterStore packed, separate;
  packed.add("qkv", {3 * 8, 16}, init::normal(1), {},
             3);  // a part of 512 bytes: the parts of `separate` are not padded
  for (const char* const name : {"q", "k", "v"}) separate.add(name, {8, 16}, init::constant(0), {}, 1);
  packed.seal(5);
  separate.seal(5);
  std::ranges::copy(packed.values().values<float>(), separate.values().data<float>());
  separate.mark_changed();
  Muon one(packed), three(separate);
  for (std::uint64_t s = 0; s < 3; ++s) {
    draw_gradients<float>(packed, s);
    std::ranges::copy(packed.gradients().values<float>(), separate.gradients().data<float>());
    one.step(0.01, 0.3);
    three.step(0.01, 0.3);
  }
  REQUIRE(packed.find("qkv").value().at(7) != 0);
  REQUIRE(same_bits(packed.values(), separate.values()));
  REQUIRE(same_bits(one.moments()[0].values, three.moments()[0].values));
}

TEST_CASE("what is no matrix is updated by AdamW at the learning rate of the step") {
  ParameterStore muon, adamw;
  fill_matrices(muon);
  fill_matrices(adamw);
  Muon first(muon, {.matrix_factor = 7, .weight_decay = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6});
  AdamW second(adamw, {.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1});
  take_steps(muon, first, 0, 3);
  take_steps(adamw, second, 0, 3);
  for (const auto& parameter : muon.parameters()) {
    const Tensor& other = adamw.find(parameter->name()).value();
    const bool same = parameter->matrices() == 0 || !parameter->trainable();
    INFO(parameter->name());
    REQUIRE(same_bits(parameter->value(), other) == same);
  }
  REQUIRE(first.moments().size() == 3);
  for (const Moment& moment : first.moments()) {
    for (const MomentLayout::Part& part : moment.parts) {
      REQUIRE((moment.name == "momentum") == (part.parameter->matrices() > 0));
    }
  }
}

TEST_CASE("Muon has the same bits at every number of threads, and after a resume") {
  const int before = threads();
  Tensor expected;
  for (const int n : {1, 2, 3, 8, 16}) {
    set_threads(n);
    ParameterStore store;
    fill_matrices(store);
    Muon optimizer(store);
    take_steps(store, optimizer, 0, 4);
    if (!expected) expected = store.values();
    INFO("threads " << n);
    REQUIRE(same_bits(store.values(), expected));
  }
  set_threads(before);
  ParameterStore first, second;
  fill_matrices(first);
  fill_matrices(second);
  Muon one(first), two(second);
  take_steps(first, one, 0, 2);
  std::ranges::copy(first.values().values<float>(), second.values().data<float>());
  second.mark_changed();
  for (std::size_t i = 0; i < one.moments().size(); ++i) {
    std::ranges::copy(one.moments()[i].values.values<float>(), two.moments()[i].values.data<float>());
  }
  two.set_steps(one.steps());
  take_steps(second, two, 2, 4);
  REQUIRE(same_bits(second.values(), expected));
}

TEST_CASE("Muon at learning rate 0, without a gradient, and on padding and frozen parameters") {
  ParameterStore store;
  fill_matrices(store);
  Muon optimizer(store, {.weight_decay = 0});
  const Tensor before = store.values().clone();
  optimizer.step(1);  // no gradient was written, and nothing decays
  REQUIRE(same_bits(store.values(), before));
  draw_gradients<float>(store, 1);
  optimizer.step(0);
  REQUIRE(same_bits(store.values(), before));
  take_steps(store, optimizer, 1, 4);
  std::vector<bool> owned(static_cast<std::size_t>(store.values().numel()));
  for (const auto& parameter : store.parameters()) {
    std::int64_t moved = 0;
    for (std::int64_t i = 0; i < parameter->shape().numel(); ++i) {
      owned[static_cast<std::size_t>(parameter->offset() + i)] = true;
      moved += parameter->value().at(i) != before.at(parameter->offset() + i);
    }
    INFO(parameter->name());
    if (parameter->trainable()) {
      REQUIRE(2 * moved > parameter->shape().numel());  // not all: some changes are below the rounding of a value
    } else {
      REQUIRE(moved == 0);
    }
  }
  for (std::int64_t i = 0; i < store.values().numel(); ++i) {
    if (!owned[static_cast<std::size_t>(i)]) REQUIRE(store.values().at(i) == 0);
  }
}

TEST_CASE("without a gradient the momentum of a matrix ends in zero and is never subnormal") {
  ParameterStore store;
  store.add("weight", {5, 6}, init::normal(1), {}, 1);
  store.seal(1);
  Muon optimizer(store);
  draw_gradients<float>(store, 1);
  optimizer.step(0.001);
  bool zero = false;
  for (int step = 0; step < 2000 && !zero; ++step) {
    optimizer.step(0.001);
    zero = true;
    for (const float m : optimizer.moments()[0].values.values<float>()) {
      zero = zero && m == 0;
      REQUIRE((m == 0 || std::abs(m) >= 1e-30F));
    }
  }
  REQUIRE(zero);
}

TEST_CASE("Muon rejects options out of range, and a store stacks that do not divide the rows") {
  ParameterStore store;
  REQUIRE_NOTHROW(Muon(store, {.matrix_factor = 0, .momentum = 0, .weight_decay = 0}));
  REQUIRE_THROWS_WITH(Muon(store, {.matrix_factor = -1}), ContainsSubstring("muon: matrix_factor"));
  REQUIRE_THROWS_WITH(Muon(store, {.matrix_factor = std::nan("")}), ContainsSubstring("matrix_factor"));
  REQUIRE_THROWS_WITH(Muon(store, {.momentum = 1}), ContainsSubstring("muon: momentum"));
  REQUIRE_THROWS_WITH(Muon(store, {.weight_decay = -1}), ContainsSubstring("muon: weight_decay"));
  REQUIRE_THROWS_WITH(Muon(store, {.beta2 = 1}), ContainsSubstring("muon: beta1 and beta2"));
  REQUIRE_THROWS_WITH(store.add("a", {4, 3}, init::constant(0), {}, 3), ContainsSubstring("divide the rows"));
  REQUIRE_THROWS_AS(store.add("a", {4}, init::constant(0), {}, 1), Error);
  REQUIRE_THROWS_AS(store.add("a", {4, 3}, init::constant(0), {}, -1), Error);
}
