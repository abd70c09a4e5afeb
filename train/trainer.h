// The trainer: one optimizer step after another on the windows of a dataset, and evaluation in between. It never
// prints, exits, or touches a file. Everything it does is a function of (configuration, dataset, number of steps done).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "data/batch.h"
#include "data/dataset.h"
#include "nn/gpt.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "train/config.h"
#include "train/gradient_tree.h"

namespace maki {

/// What one optimizer step did.
struct StepReport {
  std::int64_t step = 0;  ///< finished steps, this one included
  double loss = 0;        ///< nats a token, mean over all targets of the step
  double learning_rate = 0;
  double grad_norm = 0;  ///< before clipping
  std::int64_t tokens = 0;
};

struct EvalReport {
  std::int64_t step = 0;
  double train_loss = 0;           ///< nats a token, over the first kTrainSample batches of the training text
  std::optional<double> val_loss;  ///< none without a validation text
};

/// The model a configuration describes, for a vocabulary.
GptConfig gpt_config(const Config& config, std::int64_t vocab_size);
OptimizerOptions optimizer_options(const Config& config);

class Trainer {
 public:
  static constexpr std::int64_t kTrainSample = 20;

  /// The dataset must outlive the trainer. Without initial values, a checkpoint must be loaded before anything else.
  Trainer(const Config& config, const Dataset& dataset, bool initial_values = true);

  std::int64_t steps() const { return steps_; }
  /// How often the training text has been read.
  double epochs() const { return batches_.epochs(steps_); }
  /// Continues as if this many steps were done: with the store's and the optimizer's state restored, the run is the
  /// same.
  void set_steps(std::int64_t steps) { steps_ = steps; }

  ParameterStore& store() { return store_; }
  Optimizer& optimizer() { return optimizer_; }
  const Gpt& model() const { return model_; }
  const Config& config() const { return config_; }
  Tape& tape() { return tape_; }  ///< to be observed

  /// One optimizer step. `stop` is asked before every micro-batch; when it says yes, the step is abandoned and nothing
  /// has changed. Throws Diverged, before any update, when the loss or the gradient is not finite.
  std::optional<StepReport> step(const std::function<bool()>& stop = {});
  /// Mean losses; `stop` is asked before every batch, and none is returned when it says yes.
  std::optional<EvalReport> evaluate(const std::function<bool()>& stop = {});

 private:
  double run_micro_batch(std::int64_t micro, double scale);
  std::optional<double> loss_over(std::span<const std::int32_t> tokens, std::int64_t most_batches,
                                  const std::function<bool()>& stop);
  [[noreturn]] void diverged(const char* what, double value, double scale);

  Config config_;
  const Dataset& dataset_;
  ParameterStore store_;
  Gpt model_;
  Optimizer optimizer_;
  Schedule schedule_;
  Tape tape_;
  GradientTree tree_;
  TrainBatches batches_;
  Tensor ids_, targets_;
  std::int64_t steps_ = 0;
};

}  // namespace maki
