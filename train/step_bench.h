// A training step to be timed: the whole of it (batch, forward, backward, norm, clip, update) on random tokens, as
// Trainer does it.
//
// Floating-point operations are counted by convention: 6N + 12·L·C·T a token for L layers of width C and contexts of T
// tokens, N being the parameters without embeddings that are only looked up (a tied head counts once, positions not at
// all), attention as if it were not causal. Chowdhery et al. 2022, arXiv:2204.02311, appendix B.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/config.h"
#include "train/trainer.h"

namespace maki {

/// What to train.
struct Workload {
  Config config;
  std::int64_t vocab_size = 65;
};

/// nanoGPT's quick start, its "baby GPT" at a batch for a CPU, GPT-2 of 124 million parameters at llm.c's batch, and a
/// long window.
std::vector<std::string> workload_names();
/// Overwrites what the workload of this name says; returns the size of its vocabulary. Throws, naming the nearest, for
/// an unknown one.
std::int64_t apply_workload(Config& config, const std::string& name);

/// N of the formula above.
std::int64_t counted_parameters(const Gpt& model);
/// 6N + 12·L·C·T for contexts of block_size tokens.
double flop_per_token(const Gpt& model);

class StepBench {
 public:
  explicit StepBench(const Workload& workload);

  void step() { trainer_.step(); }
  /// Proves the gradient of the whole model by a difference: (L(θ + hg) − L(θ − hg)) / 2h must be |g|² for the gradient
  /// g of the loss L. Throws std::logic_error where it is off by more than 1 %.
  void verify();

  Trainer& trainer() { return trainer_; }
  std::int64_t tokens_per_step() const { return tokens_per_step_; }
  double flop_per_step() const { return flop_per_token(trainer_.model()) * static_cast<double>(tokens_per_step_); }

 private:
  std::int64_t tokens_per_step_;
  Dataset dataset_;
  Trainer trainer_;
};

}  // namespace maki
