// Shared by the tests of optim: a store of parameters of irregular sizes, gradients for it, and optimizers.
#pragma once

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "optim/adam.h"
#include "optim/muon.h"
#include "optim/sgd.h"
#include "tests/tensors.h"

namespace maki::tests {

// Fills the store with parameters whose sizes are close to the vector widths, and one that spans several blocks of the
// kernel.
inline void fill(ParameterStore& store) {
  for (const std::int64_t size : {1, 3, 7, 15, 17, 33}) {
    store.add("vector." + std::to_string(size), {size}, init::normal(1));
    store.add("matrix." + std::to_string(size), {size, 5}, init::normal(1));
  }
  store.add("large", {37, 301}, init::normal(1), {}, 1);
  store.add("fixed", {4, 3}, init::normal(1), ParamGroup::frozen);
  store.seal(7);
}

// Gradients that differ from step to step and span many orders of magnitude. Those of frozen parameters and padding are
// left unchanged.
template <class T>
void draw_gradients(ParameterStore& store, std::uint64_t step) {
  T* const flat = store.gradients().data<T>();
  for (const auto& parameter : store.parameters()) {
    if (!parameter->trainable()) continue;
    const RandomStream stream(step, RandomPurpose::test, parameter->name());
    for (std::int64_t i = 0; i < parameter->shape().numel(); ++i) {
      const auto k = static_cast<std::uint64_t>(i);
      flat[parameter->offset() + i] =
          static_cast<T>(stream.normal(2 * k) * std::pow(10.0, 6 * stream.uniform(2 * k + 1) - 4));
    }
  }
}

using OptimizerOptions = std::variant<SgdOptions, AdamOptions, AdamWOptions, MuonOptions>;

inline std::unique_ptr<Optimizer> make(ParameterStore& store, const OptimizerOptions& options) {
  if (const auto* const sgd = std::get_if<SgdOptions>(&options)) return std::make_unique<Sgd>(store, *sgd);
  if (const auto* const adam = std::get_if<AdamOptions>(&options)) return std::make_unique<Adam>(store, *adam);
  if (const auto* const muon = std::get_if<MuonOptions>(&options)) return std::make_unique<Muon>(store, *muon);
  return std::make_unique<AdamW>(store, std::get<AdamWOptions>(options));
}

/// The optimizers that treat all elements alike, each with several options. Not Muon, whose rule is for matrices.
inline const std::vector<OptimizerOptions> kAllOptimizers = {
    SgdOptions{},
    SgdOptions{.weight_decay = 0.1},
    SgdOptions{.momentum = 0.9, .weight_decay = 0.01},
    SgdOptions{.momentum = 0.9, .nesterov = true, .weight_decay = 0.01},
    AdamOptions{},
    AdamOptions{.beta1 = 0.8, .beta2 = 0.99, .eps = 1e-6, .weight_decay = 0.1},
    AdamWOptions{},
    AdamWOptions{.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1},
};

}  // namespace maki::tests
