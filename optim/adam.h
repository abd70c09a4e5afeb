// Adam and AdamW, in PyTorch's form (eps is added to the root of the corrected second moment).
//   Adam: Kingma and Ba 2015, arXiv:1412.6980, algorithm 1.
//   AdamW: Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2.
#pragma once

#include "optim/flat_optimizer.h"

namespace maki {

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999;  ///< in [0, 1)
  double eps = 1e-8;                  ///< above 0
  double weight_decay = 0;            ///< finite, not negative
};

/// Like AdamOptions, but with the default weight decay that is usual where the decay is decoupled.
struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
};

/// Adam as PyTorch defines it, at step t = 1, 2, …:
///   g ← g + weight_decay · value;   m ← beta1 · m + (1 − beta1) · g;   v ← beta2 · v + (1 − beta2) · g²;
///   value ← value − lr · m̂ / (√v̂ + eps),   m̂ = m / (1 − beta1^t), v̂ = v / (1 − beta2^t).
/// Here lr is OptimizerStep::learning_rate, and g is first the gradient times OptimizerStep::grad_scale. Moments: m as
/// "exp_avg", v as "exp_avg_sq"; unlike in PyTorch, they become 0 where |m| < 1e-30 or v < 1e-36 (in float64 both
/// 1e-290), far below what changes a value, because arithmetic on subnormal numbers is slow.
class Adam : public FlatOptimizer {
 public:
  /// Throws Error for options that are out of range.
  explicit Adam(ParameterStore& store, const AdamOptions& options = {}) : Adam("adam", store, options, false) {}

 protected:
  Adam(const char* name, ParameterStore& store, const AdamOptions& options, bool decoupled);

 private:
  void update_group(const OptimizerStep& step, FlatUpdate& group) override;

  AdamOptions options_;
  bool decoupled_;
};

/// Adam with decoupled weight decay, the same as PyTorch's AdamW: the decay is not added to g; instead,
/// value ← value · (1 − lr · weight_decay) before the update.
class AdamW final : public Adam {
 public:
  /// Throws Error for options that are out of range.
  explicit AdamW(ParameterStore& store, const AdamWOptions& options = {});
};

/// Throws Error, whose message begins with `name`, unless the options are in range for values of this type, in which
/// eps must not become 0.
void check_adam_options(const char* name, const AdamOptions& options, DType dtype);

/// One step of Adam (of AdamW if `decoupled`) on tensors of the same number of elements, for optimizers that use Adam
/// for some of their parameters. Without `decay`, the weight decay of the options is not applied. The new values are
/// also stored, rounded to bfloat16, in `rounded` unless it is null. Requires: the options are in range, and
/// step.number >= 1.
void update_adam(const AdamOptions& options, bool decoupled, bool decay, const OptimizerStep& step,
                 const Tensor& gradient, Tensor& value, Tensor& exp_avg, Tensor& exp_avg_sq,
                 BFloat16* rounded = nullptr);

}  // namespace maki
