// A complete training step to be timed (batch, forward, backward, norm, clip, update), as Trainer does it, on random
// tokens.
//
// Floating-point operations are counted by convention: 6N + 12·L·C·T per token for L layers of width C, a context of T
// tokens, and N parameters without the embeddings that are only looked up (a tied output layer counts once, position
// embeddings do not count). Attention is counted as if it were not causal. Chowdhery et al. 2022, arXiv:2204.02311,
// appendix B.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/loop/tasks.h"
#include "train/loop/trainer.h"
#include "train/run/config/config.h"

namespace maki {

/// The model, batch and vocabulary size to train with.
struct Workload {
  Config config;
  std::int64_t vocab_size = 65;
};

/// The names of the workloads: nanoGPT's CPU quick start ("quickstart"), its "baby GPT" with a batch for a CPU
/// ("baby"), GPT-2 with 124 million parameters and the batch of llm.c ("gpt2"), a long context ("long"), and Karpathy's
/// microgpt of names, with the batch of its fastest versions ("microgpt").
std::vector<std::string> workload_names();
/// Overwrites the fields that the workload of this name sets (n_layer, n_head, n_embd, block_size, batch_size, bias,
/// norm, activation, tie_weights), and returns the size of its vocabulary. Throws Error, suggesting the nearest name,
/// for an unknown name.
std::int64_t apply_workload(Config& config, const std::string& name);

class StepBench {
 public:
  explicit StepBench(const Workload& workload);

  void step() { trainer_.step(); }
  /// Checks the gradient g of the loss L of the whole model on the first micro-batch against finite differences: the
  /// slope (L(θ + hg) − L(θ − hg)) / 2h, extrapolated to h = 0 from two values of h, must be |g|². Where g is 0, L must
  /// be the same for 1.01 θ. Throws std::logic_error if it is not, or if the slope differs by more than 1 %. Afterwards
  /// the parameters are what they were, up to rounding, and gradients are cleared.
  void verify();

  Trainer& trainer() { return trainer_; }
  std::int64_t tokens_per_step() const { return task_->tokens_in_step(0); }
  /// By the convention above: flop_per_token() of the model for block_size tokens, times tokens_per_step().
  double flop_per_step();

 private:
  std::unique_ptr<Task> task_;
  Trainer trainer_;
};

}  // namespace maki
