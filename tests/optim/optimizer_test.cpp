// Which values an optimizer updates, what a checkpoint must store of it, and which options it rejects.
#include "optim/optimizer.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "autograd/core/parallel.h"
#include "tests/catch.h"
#include "tests/optim/small_store.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("the moments are what a checkpoint needs: named, flat, and sufficient to resume from") {
  for (std::size_t kind = 0; kind < kAllOptimizers.size(); ++kind) {
    INFO("optimizer " << kind);
    ParameterStore straight, resumed;
    fill(straight);
    fill(resumed);
    const auto one = make(straight, kAllOptimizers[kind]), two = make(resumed, kAllOptimizers[kind]);
    for (std::uint64_t s = 0; s < 4; ++s) {
      draw_gradients<float>(straight, s);
      one->step(0.01);
    }
    // A fresh optimizer takes over values, moments and the number of steps.
    std::memcpy(resumed.values().data<float>(), straight.values().data<float>(),
                sizeof(float) * static_cast<std::size_t>(straight.values().numel()));
    REQUIRE(one->moments().size() == two->moments().size());
    for (std::size_t i = 0; i < one->moments().size(); ++i) {
      REQUIRE(one->moments()[i].name == two->moments()[i].name);
      REQUIRE(one->moments()[i].values.numel() == straight.trainable().size());
      std::memcpy(two->moments()[i].values.data<float>(), one->moments()[i].values.data<float>(),
                  sizeof(float) * static_cast<std::size_t>(straight.trainable().size()));
    }
    two->set_steps(one->steps());
    for (std::uint64_t s = 4; s < 8; ++s) {
      draw_gradients<float>(straight, s);
      draw_gradients<float>(resumed, s);
      one->step(0.01);
      two->step(0.01);
    }
    REQUIRE(two->steps() == 8);
    REQUIRE(same_bits(straight.values(), resumed.values()));
  }
  ParameterStore store;
  fill(store);
  REQUIRE(Sgd(store).moments().empty());
  REQUIRE(Sgd(store, {.momentum = 0.5}).moments().at(0).name == "momentum");
  REQUIRE(AdamW(store).moments().at(0).name == "exp_avg");
  REQUIRE(Adam(store).moments().at(1).name == "exp_avg_sq");
}

TEST_CASE("at learning rate 0 no value changes, and frozen parameters and padding never change") {
  for (std::size_t kind = 0; kind < kAllOptimizers.size(); ++kind) {
    INFO("optimizer " << kind);
    ParameterStore store;
    fill(store);
    const auto optimizer = make(store, kAllOptimizers[kind]);
    const Tensor before = copy_of<float>(store.values());
    draw_gradients<float>(store, 1);
    optimizer->step(0);
    REQUIRE(same_bits(store.values(), before));

    std::vector<bool> owned(static_cast<std::size_t>(store.values().numel()));
    for (std::uint64_t s = 0; s < 5; ++s) {
      draw_gradients<float>(store, s);
      optimizer->step(0.1);
    }
    for (const auto& parameter : store.parameters()) {
      int moved = 0;
      for (std::int64_t i = 0; i < parameter->shape().numel(); ++i) {
        owned[static_cast<std::size_t>(parameter->offset() + i)] = true;
        moved += parameter->value().at(i) != before.at(parameter->offset() + i);
      }
      INFO(parameter->name());
      REQUIRE(moved == (parameter->trainable() ? parameter->shape().numel() : 0));
    }
    int padding = 0;
    for (std::int64_t i = 0; i < store.values().numel(); ++i) {
      if (owned[static_cast<std::size_t>(i)]) continue;
      ++padding;
      REQUIRE(store.values().at(i) == 0);
      for (const auto& moment : optimizer->moments()) {
        if (i < moment.values.numel()) REQUIRE(moment.values.at(i) == 0);
      }
    }
    REQUIRE(padding > 50);
  }
}

TEST_CASE("weight decay applies to matrices only, and also without a gradient") {
  ParameterStore store(DType::float64);
  Parameter& matrix = store.add("matrix", {2, 2}, init::constant(1));
  Parameter& vector = store.add("vector", {2}, init::constant(1));
  store.seal();
  AdamW optimizer(store, {.weight_decay = 0.5});
  optimizer.step(0.1);
  REQUIRE(matrix.value().at(3) == Approx(0.95));
  REQUIRE(vector.value().at(1) == 1);
}

TEST_CASE("a step increments the store's version and clears the gradients") {
  ParameterStore store;
  Parameter& weight = store.add("weight", {4}, init::constant(1));
  store.seal();
  Sgd optimizer(store);
  const std::uint64_t version = store.version();
  draw_gradients<float>(store, 1);
  optimizer.step(1);
  REQUIRE(store.version() > version);
  const Tensor after = copy_of<float>(store.values());
  optimizer.step(1);  // no gradient was written since
  REQUIRE(same_bits(store.values(), after));
  REQUIRE(weight.gradient().at(0) == 0);
}

TEST_CASE("updates have the same bits at every number of threads") {
  const int before = threads();
  for (std::size_t kind = 0; kind < kAllOptimizers.size(); ++kind) {
    Tensor expected;
    for (const int n : {1, 2, 3, 4, 8}) {
      set_threads(n);
      ParameterStore store;
      fill(store);
      const auto optimizer = make(store, kAllOptimizers[kind]);
      for (std::uint64_t s = 0; s < 3; ++s) {
        draw_gradients<float>(store, s);
        optimizer->step(0.01, 0.5);
      }
      if (!expected) expected = store.values();
      INFO("optimizer " << kind << ", threads " << n);
      REQUIRE(same_bits(store.values(), expected));
    }
  }
  set_threads(before);
}

TEST_CASE("optimizers reject options out of range") {
  ParameterStore store;
  fill(store);
  REQUIRE_THROWS_AS(Sgd(store, {.momentum = 1}), Error);
  REQUIRE_THROWS_WITH(Sgd(store, {.nesterov = true}), ContainsSubstring("nesterov"));
  REQUIRE_THROWS_WITH(AdamW(store, {.beta1 = -0.1}), ContainsSubstring("beta1"));
  REQUIRE_THROWS_AS(Adam(store, {.beta2 = 1}), Error);
  REQUIRE_THROWS_AS(Adam(store, {.eps = 0}), Error);
  REQUIRE_THROWS_AS(AdamW(store, {.weight_decay = -1}), Error);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  REQUIRE_THROWS_AS(Sgd(store, {.momentum = -0.1}), Error);
  REQUIRE_THROWS_AS(Sgd(store, {.weight_decay = kInfinity}), Error);
  REQUIRE_THROWS_AS(Adam(store, {.eps = kInfinity}), Error);
  if (store.dtype() == DType::float32)
    REQUIRE_THROWS_WITH(Adam(store, {.eps = 1e-50}), ContainsSubstring("in float32"));
  REQUIRE_THROWS_AS(AdamW(store, {.weight_decay = kInfinity}), Error);
  AdamW optimizer(store);
  REQUIRE_THROWS_AS(optimizer.step(-1), Error);
  REQUIRE_THROWS_AS(optimizer.step(kInfinity), Error);
  REQUIRE_THROWS_AS(optimizer.step(std::nan("")), Error);
  REQUIRE_THROWS_AS(optimizer.step(1, std::nan("")), Error);
  REQUIRE_THROWS_AS(optimizer.step(1, -1), Error);
  REQUIRE(optimizer.steps() == 0);
  for (const double factor : {-0.5, kInfinity, std::nan("")}) {
    REQUIRE_THROWS_WITH(optimizer.set_row_rate(factor), ContainsSubstring("learning rate of rows must be finite"));
  }
  REQUIRE_THROWS_AS(optimizer.set_steps(-1), Error);
}
