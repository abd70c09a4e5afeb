// Optimizers over the flat memory of a parameter store: gradient scaling, weight decay and update in one pass.
//
//   Optimizer optimizer(store, AdamW{.weight_decay = 0.1});
//   const double norm = grad_norm(store);                       // optim/clip.h
//   optimizer.step(schedule(s), clip_factor(norm, 1.0));        // optim/schedule.h
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "autograd/parameter.h"
#include "autograd/tensor.h"

namespace maki {

/// Stochastic gradient descent, as PyTorch's SGD with dampening 0:
///   g ← g + weight_decay · value;   u ← momentum · u + g;   value ← value − lr · u,
/// with Nesterov's momentum value ← value − lr · (g + momentum · u) instead. Sutskever et al. 2013.
struct Sgd {
  double momentum = 0;    ///< in [0, 1)
  bool nesterov = false;  ///< requires momentum > 0
  double weight_decay = 0;
};

/// Adam, as PyTorch's:
///   g ← g + weight_decay · value;   m ← beta1 · m + (1 − beta1) · g;   v ← beta2 · v + (1 − beta2) · g²;
///   value ← value − lr · m̂ / (√v̂ + eps),   m̂ = m / (1 − beta1^t), v̂ = v / (1 − beta2^t) at step t = 1, 2, ….
/// Kingma and Ba 2015, arXiv:1412.6980.
struct Adam {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
};

/// Adam with decoupled weight decay, as PyTorch's AdamW. The decay is not added to g but applied before the update:
///   value ← value · (1 − lr · weight_decay).
/// Loshchilov and Hutter 2019, arXiv:1711.05101.
struct AdamW {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
};

using OptimizerOptions = std::variant<Sgd, Adam, AdamW>;

/// The names of the moments that an optimizer with these options keeps, in the order of Optimizer::moments().
std::vector<std::string> moment_names(const OptimizerOptions& options);

/// Thread safety: none; an optimizer and its store must be used by one thread at a time.
class Optimizer {
 public:
  /// A running average that is part of the training state: flat, over the range store.trainable(), initially zero.
  struct Moment {
    std::string name;  ///< "momentum" (Sgd); "exp_avg", "exp_avg_sq" (Adam and AdamW)
    Tensor values;
  };

  /// The store need not be sealed yet. Throws Error for options that are out of range.
  ///
  /// Requires: the store outlives the optimizer.
  Optimizer(ParameterStore& store, const OptimizerOptions& options);

  /// Updates all trainable parameters with `grad_scale` times the gradients of the store; gradients that were not
  /// written count as zero. Weight decay applies to ParamGroup::decay only. Then calls touch() and clear_gradients() of
  /// the store. A learning rate of 0 changes moments but no values. Throws Error unless both numbers are finite and not
  /// negative and the store is sealed.
  void step(double learning_rate, double grad_scale = 1);

  /// Together with steps(), the complete state between two steps, for checkpoints. Sgd has no moments without momentum
  /// and one with it; Adam and AdamW have two. A load writes into these tensors. Throws Error if the store is not
  /// sealed.
  std::vector<Moment>& moments();
  std::int64_t steps() const { return steps_; }  ///< number of steps taken; bias correction depends on it
  void set_steps(std::int64_t steps);            ///< for a load; throws Error if negative

 private:
  template <class T>
  void update(FlatRange range, double learning_rate, double grad_scale, bool decay);

  ParameterStore& store_;
  OptimizerOptions options_;
  std::vector<Moment> moments_;
  std::int64_t steps_ = 0;
};

}  // namespace maki
