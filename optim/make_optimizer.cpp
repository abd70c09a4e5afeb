#include "optim/make_optimizer.h"

#include <array>

#include "autograd/core/check.h"
#include "autograd/core/table.h"
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

template <class Kind, auto options>
Made make(ParameterStore& store, const HyperParameters& h) {
  return std::make_unique<Kind>(store, options(h));
}

constexpr OptimizerKind kOptimizerRows[] = {
    {"adamw", "decoupled weight decay", make<AdamW, adam_options<AdamWOptions>>, /*adaptive=*/true, /*betas=*/true},
    {"adam", "weight decay added to the gradient", make<Adam, adam_options<AdamOptions>>, /*adaptive=*/true,
     /*betas=*/true},
    {"sgd", "momentum if above 0", make<Sgd, sgd_options>, false, false, SgdOptions().momentum, /*nesterov=*/true},
    {"muon", "orthogonalized momentum for the matrices of the blocks, adamw for the rest", make<Muon, muon_options>,
     /*adaptive=*/true, /*betas=*/true, MuonOptions().momentum, false, /*matrix_rate=*/true},
};
constexpr Table kOptimizers("optimizer", kOptimizerRows);

}  // namespace

Made make_optimizer(std::string_view name, const HyperParameters& hyper, ParameterStore& store) {
  return optimizer_kind(name).make(store, hyper);
}

const OptimizerKind& optimizer_kind(std::string_view name) { return kOptimizers.row(name); }

std::vector<std::string> optimizer_names() { return kOptimizers.names(); }

std::string optimizer_help() { return "optimizer (" + kOptimizers.help() + ")"; }

}  // namespace maki
