// What a training session reports, and to whom. The console, metrics.jsonl and tests are listeners.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/run/early_stop.h"

namespace maki {

/// The result of one optimizer step.
struct StepReport {
  std::int64_t step = 0;  ///< finished steps, including this one
  double loss = 0;        ///< in nats per token, mean over all targets of the step
  double learning_rate = 0;
  double grad_norm = 0;  ///< before clipping
  std::int64_t tokens = 0;
};

/// Losses in nats per token, without dropout and label smoothing.
struct EvalReport {
  std::int64_t step = 0;
  double train_loss = 0;  ///< over at most eval_sample().train batches, spread evenly over the training text
  std::optional<double> val_loss = std::nullopt;  ///< over val_share of the validation text; nullopt without one
  double val_share = 1;
  /// If val_loss covers more than the other evaluations of the run: the loss over what they cover, for comparison.
  std::optional<double> sampled_val_loss = std::nullopt;
  double sampled_val_share = 1;

  /// The numbers by which evaluations of one run are compared; meaningful only with a validation text.
  EvalPoint point() const {
    if (sampled_val_loss) return {step, *sampled_val_loss, sampled_val_share, train_loss};
    return {step, val_loss.value_or(0), val_share, train_loss};
  }
};

/// What an n-gram count of the training text predicts of the validation text, without any network.
struct CountingReport {
  std::int64_t step = 0;  ///< at which it was counted: 0, except in runs that began without
  int order = 0;          ///< tokens of the longest n-grams
  double val_loss = 0;    ///< in nats per token, over the targets of an evaluation of the model
  double nats_per_character = 0;
  double train_share = 1, val_share = 1;  ///< of the training text that was counted and of the validation text
};

/// Receives what happens in a session, on the session's thread and in the order of events. An exception that a listener
/// throws ends the session.
class SessionListener {
 public:
  virtual ~SessionListener() = default;

  /// What counting alone reaches, before training begins, and again at every resume.
  virtual void on_counting(const CountingReport&) {}
  /// Training begins after `step` finished steps.
  virtual void on_start(std::int64_t /*step*/) {}
  /// After `step` steps it was decided that the run will have `max_steps` steps, because these fit into its time.
  virtual void on_new_length(std::int64_t /*step*/, std::int64_t /*max_steps*/) {}
  /// A step has finished, after `seconds`.
  virtual void on_step(const StepReport&, double /*seconds*/) {}
  /// Every log_interval steps, after the last of them. `tokens` of the report counts from step 0; the rate covers the
  /// steps since the previous call; the time is the training time of the whole run.
  virtual void on_log(const StepReport&, double /*tokens_per_second*/, double /*elapsed_seconds*/) {}
  /// An evaluation is complete, and `best` with its checkpoint is saved if this is the best so far.
  virtual void on_eval(const EvalReport&, bool /*best*/) {}
  /// The model generated a text after `step` steps.
  virtual void on_sample(std::int64_t /*step*/, const std::string& /*text*/) {}
  /// The model has been overfitting since `best_step`; `ends`: the session stops for that reason.
  virtual void on_overfitting(std::int64_t /*best_step*/, bool /*ends*/) {}
  /// Everything reported so far must now be made durable: a checkpoint is about to be written, or the session ends.
  virtual void on_sync() {}
  /// Something that a user should know, in one sentence.
  virtual void on_note(const std::string& /*sentence*/) {}
  /// The session was interrupted and its state is saved; `evaluates`: the state is evaluated before the session ends.
  virtual void on_interrupt(std::int64_t /*step*/, bool /*evaluates*/) {}
  /// All steps are done. `passes`: how many times the training text was read.
  virtual void on_finish(std::int64_t /*step*/, double /*elapsed_seconds*/, double /*passes*/) {}
  /// The best checkpoint of a finished run, and its loss over this share of the validation text.
  virtual void on_best(std::int64_t /*step*/, double /*loss*/, double /*share*/) {}
};

}  // namespace maki
