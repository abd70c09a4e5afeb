// What a training session reports, and to whom. The console, metrics.jsonl and tests are listeners.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/run/early_stop.h"

namespace maki {

class RunHistory;

/// The result of one optimizer step.
struct StepReport {
  std::int64_t step = 0;  ///< finished steps, including this one
  double loss = 0;        ///< in nats, mean over all targets of the step, with dropout and label smoothing
  double learning_rate = 0;
  double grad_norm = 0;     ///< before clipping, without the rows of n-gram tables (optim/clip.h)
  std::int64_t tokens = 0;  ///< of this step (Task::tokens_in_step()); for on_log(), of all steps so far
};

/// Losses in nats per token, without dropout and label smoothing.
struct EvalReport {
  std::int64_t step = 0;
  double train_loss = 0;  ///< over at most eval_sample().train batches, spread evenly over the training text
  std::optional<double> val_loss = std::nullopt;  ///< over val_share of the validation text; nullopt without one
  double val_share = 1;
  std::optional<double> val_accuracy = std::nullopt;  ///< the share of right answers in the same data (Task::answers())
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

/// What a run records in words, for those who look at it later.
struct Remark {
  enum class Kind : std::uint8_t {
    plan,     ///< what was planned, and why; in lines
    session,  ///< a session begins: on which machine, and how it computes
    end       ///< a session has ended: "finished", "overfitting", "text unreadable" or kInterrupted
  };
  static constexpr const char* kInterrupted = "interrupted";
  Kind kind;
  std::int64_t step = 0;
  std::string text;
  double elapsed_seconds = 0;  ///< of training so far; at the end of a session, else 0
};

/// How large the parameters of a layer are, and how much a step has changed them.
struct LayerReport {
  std::string layer;  ///< what the names of its parameters begin with, such as "h.0"
  double norm = 0;    ///< Euclidean, of all its parameters
  double update = 0;  ///< norm of the change / norm, over a sample of them
};

/// Receives what happens in a session, on the session's thread and in the order of events. An exception that a listener
/// throws ends the session and is thrown by Session::train(); what was saved before remains.
class SessionListener {
 public:
  virtual ~SessionListener() = default;

  /// What counting alone reaches: after on_start() and before the first step of the session, also of a resumed one.
  virtual void on_counting(const CountingReport&) {}
  /// Training begins, or is resumed, after `step` finished steps. Not called if the run had ended early before.
  /// `history` lives as long as the session, and has what was measured up to the event that a listener is told of.
  virtual void on_start(std::int64_t /*step*/, const RunHistory& /*history*/) {}
  /// After `step` steps it was decided that the run will have `max_steps` steps, because these fit into its time.
  virtual void on_new_length(std::int64_t /*step*/, std::int64_t /*max_steps*/) {}
  /// A step has finished, after `seconds`.
  virtual void on_step(const StepReport&, double /*seconds*/) {}
  /// After every step that is a multiple of log_interval, and after step max_steps. `tokens` of the report counts from
  /// step 0; the rate covers the steps since the previous call; the time is that of all sessions of the run, with
  /// evaluations and checkpoints.
  virtual void on_log(const StepReport&, double /*tokens_per_second*/, double /*elapsed_seconds*/) {}
  /// After the step before an evaluation: the layers, in the order of their parameters.
  virtual void on_layers(std::int64_t /*step*/, const std::vector<LayerReport>&) {}
  virtual void on_remark(const Remark&) {}
  /// An evaluation is complete, and `best` with its checkpoint is saved if this is the best so far.
  virtual void on_eval(const EvalReport&, bool /*best*/) {}
  /// The model generated a text after `step` steps.
  virtual void on_sample(std::int64_t /*step*/, const std::string& /*text*/) {}
  /// The model has been overfitting since `best_step`; `ends`: the session stops for that reason. A session reports it
  /// once without and once with `ends`, at most.
  virtual void on_overfitting(std::int64_t /*best_step*/, bool /*ends*/) {}
  /// Everything reported so far must now be made durable: a checkpoint is about to be written, or the session ends.
  virtual void on_sync() {}
  /// Something that a user should know, in one sentence.
  virtual void on_note(const std::string& /*sentence*/) {}
  /// The session was interrupted and its state is saved; `evaluates`: the state is evaluated before the session ends.
  virtual void on_interrupt(std::int64_t /*step*/, bool /*evaluates*/) {}
  /// The run has ended: all steps are done, or it was stopped early. `passes`: how many times the training text was
  /// read.
  virtual void on_finish(std::int64_t /*step*/, double /*elapsed_seconds*/, double /*passes*/) {}
  /// The best checkpoint of a run that has ended, if it has one, and its loss over this share of the validation text.
  virtual void on_best(std::int64_t /*step*/, double /*loss*/, double /*share*/) {}
};

}  // namespace maki
