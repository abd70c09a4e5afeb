// The optimizers that have a name. To add one, write its class in a file of its own and add a row to the table in
// make_optimizer.cpp; the configuration, its help and checkpoints need nothing more.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "optim/optimizer.h"

namespace maki {

/// The hyper-parameters of all of them together; each optimizer reads those that it has and ignores the others. One
/// that is not given has the default of the optimizer's own options, which is that of its publication or of PyTorch:
/// AdamWOptions, for example.
struct HyperParameters {
  std::optional<double> beta1 = {}, beta2 = {}, eps = {}, momentum = {};
  std::optional<bool> nesterov = {};
  std::optional<double> matrix_factor = {}, weight_decay = {};
};

/// What a configuration and a plan have to know about an optimizer: a row of the table in make_optimizer.cpp.
struct OptimizerKind {
  const char *name, *help;
  std::unique_ptr<Optimizer> (*make)(ParameterStore& store, const HyperParameters& hyper);
  bool adaptive = false;  ///< whether the lengths of its steps do not depend on those of the gradients, as for adamw
  bool betas = false;     ///< whether it has beta1 and beta2
  std::optional<double> momentum = {};         ///< of a new run, if it has one
  bool nesterov = false, matrix_rate = false;  ///< whether it has nesterov and matrix_factor
};
/// The row of this name. Throws Error, suggesting the most similar name, if there is none.
const OptimizerKind& optimizer_kind(std::string_view name);

/// The optimizer of this name. The store need not be sealed yet, and must outlive the optimizer. Throws Error for a
/// name that is not in the table, suggesting the most similar one, and for hyper-parameters that are out of range.
std::unique_ptr<Optimizer> make_optimizer(std::string_view name, const HyperParameters& hyper, ParameterStore& store);

std::vector<std::string> optimizer_names();
/// A line of help: every name with what distinguishes it.
std::string optimizer_help();

}  // namespace maki
