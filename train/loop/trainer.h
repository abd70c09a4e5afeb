// The trainer: optimizer steps on the training windows of a dataset, and evaluations. It never prints, exits or touches
// a file. Everything that it computes is a function of (configuration, dataset, number of finished steps).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "data/dataset/batch.h"
#include "data/dataset/dataset.h"
#include "nn/models/gpt.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "train/config/config.h"
#include "train/run/early_stop.h"
#include "train/loop/evaluate.h"
#include "train/loop/gradient_tree.h"

namespace maki {

/// What one optimizer step did.
struct StepReport {
  std::int64_t step = 0;  ///< finished steps, this one included
  double loss = 0;        ///< nats per token, mean over all targets of the step
  double learning_rate = 0;
  double grad_norm = 0;  ///< before clipping
  std::int64_t tokens = 0;
};

/// An evaluation. Losses are in nats per token, without dropout and label smoothing.
struct EvalReport {
  std::int64_t step = 0;
  double train_loss = 0;  ///< over eval_sample().train batches spread evenly over the training text
  std::optional<double> val_loss = std::nullopt;  ///< over val_share of the validation text; nullopt if there is none
  double val_share = 1;
  /// If val_loss covers more than the other evaluations of the run: the loss over the share that they cover.
  std::optional<double> sampled_val_loss = std::nullopt;
  double sampled_val_share = 1;

  /// What is compared between the evaluations of a run. Requires: the run has a validation text.
  Measured measured() const {
    if (sampled_val_loss) return {step, *sampled_val_loss, sampled_val_share, train_loss};
    return {step, val_loss.value_or(0), val_share, train_loss};
  }
};

/// The largest number of batches of each text that an evaluation covers, spread evenly over the text; 0: all.
struct EvalSample {
  std::int64_t train, val;
};
/// The sample that the field eval_batches describes. Its automatic choice counts arithmetic and not time, so that a run
/// remains a function of its configuration: a forward pass costs a third of a training step on the same tokens, and an
/// evaluation may cost a tenth of the training between two evaluations.
EvalSample eval_sample(const Config& config);

/// The model that a configuration describes, for a vocabulary of this size.
GptConfig gpt_config(const Config& config, std::int64_t vocab_size);
/// The optimizer that a configuration describes.
OptimizerOptions optimizer_options(const Config& config);

class Trainer {
 public:
  /// Allocates the model and draws its initial values, unless `initial_values` is false: then values must be loaded
  /// before anything else. The dataset must outlive the trainer.
  Trainer(const Config& config, const Dataset& dataset, bool initial_values = true);

  std::int64_t steps() const { return steps_; }
  /// Passes over the training text so far, with a fraction.
  double epochs() const { return batches_.epochs(steps_); }
  /// Sets the number of finished steps. With the state of the store and the optimizer restored as well, the run
  /// continues exactly as if it had not been stopped.
  void set_steps(std::int64_t steps) { steps_ = steps; }

  ParameterStore& store() { return store_; }
  Optimizer& optimizer() { return optimizer_; }
  const Gpt& model() const { return model_; }
  const Config& config() const { return config_; }
  Tape& tape() { return tape_; }  ///< for an observer

  /// One optimizer step. `stop` is called before every micro-batch; if it returns true, the step is abandoned, nothing
  /// has changed, and the result is nullopt. Throws Diverged, before any update, if the loss or the gradient is not
  /// finite.
  std::optional<StepReport> step(const std::function<bool()>& stop = {});
  /// Throws Diverged unless the state is fit to be saved: every value and moment is finite, and so is the loss of a
  /// forward pass over the first micro-batch of the next step. (Before the first step there is no forward pass, because
  /// nothing has changed the initial values yet.)
  void require_finite();
  /// Mean losses over eval_sample(), and over the `whole` validation text if asked for. `stop` is called before every
  /// batch; if it returns true, the result is nullopt. Throws Diverged if a loss is not finite.
  std::optional<EvalReport> evaluate(const std::function<bool()>& stop = {}, bool whole = false);
  /// The mean loss over the same sample of the validation text, or over the `whole` text. `stop` and errors as above.
  std::optional<double> validation_loss(const std::function<bool()>& stop = {}, bool whole = false);
  /// The share of the validation batches that an evaluation covers: more than 0, at most 1. Requires: the dataset has a
  /// validation text.
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
