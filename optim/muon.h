// Muon: momentum whose update of a matrix is replaced by the nearest orthogonal matrix, approximately.
//   Keller Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/; weight decay as in Liu et al. 2025,
//   arXiv:2502.16982, and in PyTorch's torch.optim.Muon.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "autograd/core/storage.h"
#include "optim/adam.h"
#include "optim/newton_schulz.h"
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
/// with orthogonalized() of optim/newton_schulz.h, where g is the gradient times OptimizerStep::grad_scale, and m
/// becomes 0 where |m| < 1e-30 (in float64: 1e-290). AdamW, with the learning rate of the step, for everything else:
/// vectors, tables and output layers, whose rows belong to tokens and receive gradients of very different sizes.
/// Moments: m as "momentum"; those of AdamW.
class Muon final : public ParameterOptimizer {
 public:
  /// Throws Error for options that are out of range.
  explicit Muon(ParameterStore& store, const MuonOptions& options = {});
  std::int64_t update_bytes() const override;

 private:
  std::vector<MomentSpec> moments_of(const Parameter& parameter) const override;
  bool updates_elements_of(const Parameter& parameter) const override { return parameter.matrices() == 0; }
  void update_parameter(const OptimizerStep& step, ParameterUpdate& p) override;
  void begin(FlatRange range) override;
  void finish(const OptimizerStep& step) override;
  /// How the matrices in a range are updated, and the memory that this takes.
  struct Way {
    std::int64_t small = 0;  ///< number of matrices that are updated side by side, each by one thread
    std::int64_t thread_bytes = 0, team_bytes = 0;
    std::int64_t bytes() const;
  };
  Way way_of(FlatRange range) const;

  /// Matrices of one parameter.
  struct Matrices {
    MatrixStack stack;
    bool decay;
    Tensor value, gradient, momentum;
  };
  template <class T>
  void update_matrices(const OptimizerStep& step, Matrices& matrices, std::byte* memory, bool one_thread);

  MuonOptions options_;
  AdamOptions adam_;
  // Of the step in progress.
  Way way_;
  Storage memory_;
  std::vector<Matrices> small_;
};

}  // namespace maki
