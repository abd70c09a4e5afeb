#include "optim/make_optimizer.h"

#include "autograd/core/check.h"
#include "autograd/core/table.h"
#include "optim/adam.h"
#include "optim/muon.h"
#include "optim/sgd.h"

namespace maki {
namespace {

using Made = std::unique_ptr<Optimizer>;

// The options of an optimizer, with those hyper-parameters that it has and that are given.
template <class Options>
Options options_of(const HyperParameters& h) {
  Options o;
  const auto set = [](auto& member, const auto& given) { member = given.value_or(member); };
  if constexpr (requires { o.beta1; }) set(o.beta1, h.beta1);
  if constexpr (requires { o.beta2; }) set(o.beta2, h.beta2);
  if constexpr (requires { o.eps; }) set(o.eps, h.eps);
  if constexpr (requires { o.momentum; }) set(o.momentum, h.momentum);
  if constexpr (requires { o.nesterov; }) set(o.nesterov, h.nesterov);
  if constexpr (requires { o.matrix_factor; }) set(o.matrix_factor, h.matrix_factor);
  set(o.weight_decay, h.weight_decay);
  return o;
}

template <class Kind, class Options>
Made make(ParameterStore& store, const HyperParameters& h) {
  return std::make_unique<Kind>(store, options_of<Options>(h));
}

constexpr OptimizerKind kOptimizerRows[] = {
    {"adamw", "decoupled weight decay", make<AdamW, AdamWOptions>, /*adaptive=*/true, /*betas=*/true},
    {"adam", "weight decay added to the gradient", make<Adam, AdamOptions>, /*adaptive=*/true, /*betas=*/true},
    {"sgd", "momentum if above 0", make<Sgd, SgdOptions>, false, false, SgdOptions().momentum, /*nesterov=*/true},
    {"muon", "orthogonalized momentum for the matrices of the blocks, adamw for the rest", make<Muon, MuonOptions>,
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
