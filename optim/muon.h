// Muon: momentum whose update of a matrix is replaced by the nearest orthogonal matrix, approximately.
//   Keller Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/; weight decay as in Liu et al. 2025,
//   arXiv:2502.16982, and in PyTorch's torch.optim.Muon.
#pragma once

#include "optim/adam.h"
#include "optim/parameter_optimizer.h"

namespace maki {

struct MuonOptions {
  /// Learning rate of matrices as a multiple of that of a step; finite, not negative. 20 makes 0.02, the rate of the
  /// publication, of a learning rate of 0.001.
  double matrix_factor = 20;
  double momentum = 0.95;      ///< in [0, 1)
  double weight_decay = 0.01;  ///< decoupled, of all parameters of ParamGroup::decay; finite, not negative
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;  ///< of AdamW
};

/// For each matrix of Parameter::matrices(), [r, c], at its part of the gradient g and with Nesterov momentum:
///   m ← momentum · m + (1 − momentum) · g;   u = momentum · m + (1 − momentum) · g;   μ = matrix_factor · lr;
///   value ← value · (1 − μ · weight_decay) − μ · √max(1, r/c) · orthogonalized(u),
/// where g is the gradient times OptimizerStep::grad_scale, and m becomes 0 where |m| < 1e-30 (in float64: 1e-290).
/// AdamW, with the learning rate of the step, for everything else: vectors, tables and output layers, whose rows belong
/// to tokens and receive gradients of very different sizes.
/// Moments: m as "momentum"; those of AdamW.
class Muon final : public ParameterOptimizer {
 public:
  /// Throws Error for options that are out of range.
  explicit Muon(ParameterStore& store, const MuonOptions& options = {});

 private:
  std::vector<MomentSpec> moments_of(const Parameter& parameter) const override;
  bool updates_elements_of(const Parameter& parameter) const override { return parameter.matrices() == 0; }
  void update_parameter(const OptimizerStep& step, ParameterUpdate& p) override;

  MuonOptions options_;
  AdamOptions adam_;
};

/// U Vᵀ of the singular value decomposition U Σ Vᵀ of each of `matrices` matrices that are stacked along the first axis
/// of x, approximately: five steps X ← a X + (b A + c A²) X, A = X Xᵀ, of a Newton–Schulz iteration that starts with x
/// divided by its Frobenius norm (at least 1e-7, so that a matrix of zeros stays one). Its coefficients a =
/// 3.4445, b = −4.7750 and c = 2.0315 are chosen for speed: singular values end between about 0.7 and 1.2. All products
/// are those of kernels/gemm, as in a recorded op, so the bits do not depend on the number of threads. Throws Error
/// unless x is [matrices · r, c].
Tensor orthogonalized(const Tensor& x, std::int64_t matrices = 1);

}  // namespace maki
