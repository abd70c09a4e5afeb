// The trainer: one optimizer step after another on the windows of a dataset, and evaluation in between. It never
// prints, exits, or touches a file. Everything it does is a function of (configuration, dataset, number of steps done).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "data/batch.h"
#include "data/dataset.h"
#include "nn/gpt.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "train/config.h"
#include "train/early_stop.h"
#include "train/evaluate.h"
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

/// Losses in nats per token, without dropout and label smoothing.
struct EvalReport {
  std::int64_t step = 0;
  double train_loss = 0;  ///< over eval_sample().train batches spread evenly over the training text
  std::optional<double> val_loss = std::nullopt;  ///< over val_share of the validation text; none without one
  double val_share = 1;
  /// Where val_loss covers more than the other evaluations of the run: the loss over what they cover, for comparison.
  std::optional<double> sampled_val_loss = std::nullopt;
  double sampled_val_share = 1;

  /// What is compared between the evaluations of one run that has a validation text.
  Measured measured() const {
    if (sampled_val_loss) return {step, *sampled_val_loss, sampled_val_share, train_loss};
    return {step, val_loss.value_or(0), val_share, train_loss};
  }
};

/// Batches of each text that an evaluation takes at most, spread evenly over it; 0: all.
struct EvalSample {
  std::int64_t train, val;
};
/// What eval_batches asks for. The automatic choice counts arithmetic and not time, so that a run stays a function of
/// its configuration: a forward pass costs a third of a training step on the same tokens, and an evaluation may cost a
/// tenth of the training between two of them.
EvalSample eval_sample(const Config& config);

/// The model a configuration describes, for a vocabulary.
GptConfig gpt_config(const Config& config, std::int64_t vocab_size);
OptimizerOptions optimizer_options(const Config& config);

class Trainer {
 public:
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
  /// Throws Diverged unless this state is one to save: every value and moment is finite, and so is the loss of a
  /// forward pass over the batch that the next step begins with. (Before the first step nothing has changed the values,
  /// and there is no forward pass.)
  void require_finite();
  /// Mean losses over eval_sample(), or over the `whole` validation text; `stop` is asked before every batch, and none
  /// is returned when it says yes. Throws Diverged when a loss is not finite.
  std::optional<EvalReport> evaluate(const std::function<bool()>& stop = {}, bool whole = false);
  /// The mean over the same part of the validation text, or over the `whole` of it.
  std::optional<double> validation_loss(const std::function<bool()>& stop = {}, bool whole = false);
  /// The part of the validation text that an evaluation covers, in batches: more than 0, at most 1.
  double val_share() const;

 private:
  double run_micro_batch(std::int64_t micro, double scale);
  EvalBatches eval_batches(TokenSpan tokens) const;
  double finite_loss(const MeanLoss& loss) const;
  [[noreturn]] void diverged(const char* what, double value, double scale);

  Config config_;
  const Dataset& dataset_;
  ParameterStore store_;
  Gpt model_;
  Optimizer optimizer_;
  std::vector<SchedulePhase> schedule_;
  Tape tape_;
  GradientTree tree_;
  TrainBatches batches_;
  Tensor ids_, targets_;
  std::int64_t steps_ = 0;
};

}  // namespace maki
