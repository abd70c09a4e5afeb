// Optimizers over a store's flat storage: one pass for clipping, decay and update together.
//
//   Optimizer optimizer(store, AdamW{.weight_decay = 0.1});
//   const double norm = grad_norm(store);                       // optim/clip.h
//   optimizer.step(schedule(s), clip_factor(norm, 1.0));
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "autograd/parameter.h"
#include "autograd/tensor.h"

namespace maki {

/// g ← g + weight_decay · value;  u ← momentum · u + g;  value ← value − lr · u, with Nesterov's momentum − lr · (g +
/// momentum · u). Sutskever et al. 2013, as PyTorch's SGD with dampening 0.
struct Sgd {
  double momentum = 0;
  bool nesterov = false;  ///< needs momentum > 0
  double weight_decay = 0;
};

/// m, v: running means of g and g²;  value ← value − lr · m̂ / (√v̂ + eps), m̂ and v̂ corrected for their start at 0.
/// Weight decay is added to g (L2). Kingma and Ba 2015, arXiv:1412.6980, as PyTorch's Adam.
struct Adam {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
};

/// Adam whose decay stays out of the moments: value ← value · (1 − lr · weight_decay) before the update. Loshchilov and
/// Hutter 2019, arXiv:1711.05101, as PyTorch's AdamW.
struct AdamW {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
};

using OptimizerOptions = std::variant<Sgd, Adam, AdamW>;

/// Of the moments that an optimizer with these options keeps.
std::vector<std::string> moment_names(const OptimizerOptions& options);

class Optimizer {
 public:
  /// A running average that training needs to go on exactly: flat, over store.trainable(), zero at the start.
  struct Moment {
    std::string name;  ///< "momentum"; "exp_avg", "exp_avg_sq"
    Tensor values;
  };

  /// The store must outlive the optimizer; it need not be sealed yet. Throws, naming the rule, for values out of range.
  Optimizer(ParameterStore& store, const OptimizerOptions& options);

  /// One update with gradients of `grad_scale` times what the store holds (what nobody wrote counts as zero). Weight
  /// decay acts on Group::decay alone. Afterwards the store's version is raised and its gradients are cleared. With a
  /// learning rate of 0 no value moves. Throws unless both numbers are finite and not negative.
  void step(double learning_rate, double grad_scale = 1);

  /// The state between two steps, for a checkpoint: it is all there is. Sgd without momentum has no moments, with
  /// momentum one, Adam and AdamW two. The tensors are the optimizer's own: a load writes into them.
  std::vector<Moment>& moments();
  std::int64_t steps() const { return steps_; }  ///< finished; bias correction depends on it
  void set_steps(std::int64_t steps);

 private:
  template <class T>
  void update(FlatRange range, double learning_rate, double grad_scale, bool decay);

  ParameterStore& store_;
  OptimizerOptions options_;
  std::vector<Moment> moments_;
  std::int64_t steps_ = 0;
};

}  // namespace maki
