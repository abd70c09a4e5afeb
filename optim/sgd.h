// Stochastic gradient descent. Sutskever, Martens, Dahl and Hinton 2013, "On the importance of initialization and
// momentum in deep learning", in PyTorch's form (the momentum is not scaled by the learning rate).
#pragma once

#include "optim/flat_optimizer.h"

namespace maki {

struct SgdOptions {
  double momentum = 0;      ///< in [0, 1)
  bool nesterov = false;    ///< requires momentum > 0
  double weight_decay = 0;  ///< finite, not negative
};

/// SGD as PyTorch defines it, with dampening 0:
///   g ← g + weight_decay · value;   u ← momentum · u + g;   value ← value − lr · u,
/// with Nesterov's momentum value ← value − lr · (g + momentum · u) instead.
/// Here g is first the gradient times OptimizerStep::grad_scale. Moments: u as "momentum", none if momentum is 0;
/// unlike in PyTorch, u becomes 0 where |u| < 1e-30 (in float64: 1e-290), so that it is never subnormal.
class Sgd final : public FlatOptimizer {
 public:
  /// Throws Error for options that are out of range.
  explicit Sgd(ParameterStore& store, const SgdOptions& options = {});

 private:
  void update_group(const OptimizerStep& step, FlatUpdate& group) override;

  SgdOptions options_;
};

}  // namespace maki
