#include "optim/make_optimizer.h"

#include <array>
#include <fmt/ranges.h>

#include "autograd/core/check.h"
#include "autograd/core/nearest.h"
#include "optim/adam.h"
#include "optim/muon.h"
#include "optim/sgd.h"

namespace maki {
namespace {

using Made = std::unique_ptr<Optimizer>;

// AdamOptions or AdamWOptions, each with its own defaults.
template <class Options>
Options adam_options(const HyperParameters& h) {
  const Options defaults;
  return {.beta1 = h.beta1.value_or(defaults.beta1),
          .beta2 = h.beta2.value_or(defaults.beta2),
          .eps = h.eps.value_or(defaults.eps),
          .weight_decay = h.weight_decay.value_or(defaults.weight_decay)};
}

SgdOptions sgd_options(const HyperParameters& h) {
  const SgdOptions defaults;
  return {.momentum = h.momentum.value_or(defaults.momentum),
          .nesterov = h.nesterov.value_or(defaults.nesterov),
          .weight_decay = h.weight_decay.value_or(defaults.weight_decay)};
}

MuonOptions muon_options(const HyperParameters& h) {
  const MuonOptions defaults;
  return {.matrix_factor = h.matrix_factor.value_or(defaults.matrix_factor),
          .momentum = h.momentum.value_or(defaults.momentum),
          .weight_decay = h.weight_decay.value_or(defaults.weight_decay),
          .beta1 = h.beta1.value_or(defaults.beta1),
          .beta2 = h.beta2.value_or(defaults.beta2),
          .eps = h.eps.value_or(defaults.eps)};
}

struct Row {
  const char *name, *summary;
  Made (*make)(ParameterStore& store, const HyperParameters& h);
};
constexpr std::array kOptimizers = {
    Row{"adamw", "decoupled weight decay",
        [](ParameterStore& store, const HyperParameters& h) -> Made {
          return std::make_unique<AdamW>(store, adam_options<AdamWOptions>(h));
        }},
    Row{"adam", "weight decay added to the gradient",
        [](ParameterStore& store, const HyperParameters& h) -> Made {
          return std::make_unique<Adam>(store, adam_options<AdamOptions>(h));
        }},
    Row{"sgd", "momentum if above 0",
        [](ParameterStore& store, const HyperParameters& h) -> Made {
          return std::make_unique<Sgd>(store, sgd_options(h));
        }},
    Row{"muon", "orthogonalized momentum for the matrices of the blocks, adamw for the rest",
        [](ParameterStore& store, const HyperParameters& h) -> Made {
          return std::make_unique<Muon>(store, muon_options(h));
        }},
};

}  // namespace

Made make_optimizer(std::string_view name, const HyperParameters& hyper, ParameterStore& store) {
  for (const Row& row : kOptimizers) {
    if (name == row.name) return row.make(store, hyper);
  }
  const std::vector<std::string> names = optimizer_names();
  fail("optimizer: must be one of {}; got {}{}", fmt::join(names, ", "), name, nearest_hint(name, names));
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Row& row : kOptimizers) names.emplace_back(row.name);
  return names;
}

std::string optimizer_help() {
  std::vector<std::string> lines;
  for (const Row& row : kOptimizers) lines.push_back(fmt::format("{}: {}", row.name, row.summary));
  return fmt::format("optimizer ({})", fmt::join(lines, "; "));
}

}  // namespace maki
