// The trainer: optimizer steps on the batches of a task, and evaluations. It never prints, exits or writes a file.
// Everything that it computes is a function of (configuration, task, number of finished steps), whether one process
// trains or the ranks of a team do. Then each rank has a trainer of the same configuration and task. That of rank 0 is
// used as if it were alone, and tells the others, which follow(), what to do.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/tape.h"
#include "optim/lr_schedule.h"
#include "train/loop/evaluate.h"
#include "train/loop/task.h"
#include "train/loop/team/gradient_sum.h"
#include "train/loop/team/team.h"
#include "train/run/config/config.h"
#include "train/run/listener.h"
#include "train/run/verified_checkpoint.h"

namespace maki {

/// The largest number of batches of each text that an evaluation covers (see mean_loss()); 0: all, for `val` alone.
struct EvalSample {
  std::int64_t train, val;
};
/// The sample that the field eval_batches describes. Its automatic choice counts arithmetic and not time, so that a run
/// remains a function of its configuration: a forward pass costs a third of a training step on the same tokens, and an
/// evaluation may cost a tenth of the training between two evaluations. A quarter of these batches, at most 20, are of
/// the training text. A given number is that of validation batches, besides at most 20 of the training text.
EvalSample eval_sample(const Config& config);

/// Whether training keeps a rounded copy of the weights (ParameterStore::keep_rounded_values()): if its products round
/// them, and that pays on this CPU.
bool keeps_rounded_weights(const Config& config);

/// The model of a task, for a trainer.
std::unique_ptr<TrainableModel> trainable_model(const Config& config, const Task& task);

class Trainer {
 public:
  /// Allocates the model of the task and draws its initial values, unless `initial_values` is false: then values must
  /// be loaded before anything else. Requires: the task outlives the trainer.
  Trainer(const Config& config, const Task& task, bool initial_values = true);
  /// Takes a model that trainable_model() made of the same arguments.
  Trainer(const Config& config, const Task& task, std::unique_ptr<TrainableModel> model, bool initial_values = true,
          Team& team = no_team());
  /// Rank 0 lets the others go, unless an exception ends this object: then whoever catches it tells them.
  ~Trainer();

  /// On the other ranks: does what rank 0 orders until its trainer is gone. If `stop` is requested, so does rank 0 in
  /// its next step or evaluation. Throws what these throw, and RankError.
  void follow(const StopRequest& stop = {});

  std::int64_t steps() const { return steps_; }
  /// Passes over the training data so far, with a fraction.
  double epochs() const { return task_.epochs(steps_); }
  /// Continues from a checkpoint exactly as if training had not been stopped: loads values, moments, what the model
  /// carries from one step to the next, and the number of finished steps. Requires: the trainer has the configuration
  /// of the checkpoint. Throws CorruptFile if the file does not fit or was damaged after it was verified, and
  /// CheckpointError if it cannot be read; after either, the trainer must not be used.
  void restore(const VerifiedCheckpoint& from);
  /// Replaces the later phases of the schedule. Requires: those that have begun stay as they are.
  void set_phases(std::vector<Phase> phases);

  ParameterStore& store() { return model_->store; }
  Optimizer& optimizer() { return *model_->optimizer; }
  const Model& model() const { return *model_->model; }
  const TrainableModel& trainable() const { return *model_; }  ///< all three
  CarriedStates& carried() { return carried_; }                ///< from the last step to the next
  const Task& task() const { return task_; }
  const Config& config() const { return config_; }
  Tape& tape() { return tape_; }  ///< for an observer

  /// One optimizer step. `stop` is asked before every micro-batch; if it is requested, of any rank, the step is
  /// abandoned, nothing has changed, and the result is nullopt. Throws DivergedError, before any update, if the loss or
  /// the gradient is not finite, and what Task::fill() throws; the state is then that of before.
  std::optional<StepReport> step(const StopRequest& stop = {});
  /// Throws DivergedError unless the state is fit to be saved: every value and moment, and every number that is carried
  /// to the next step, is finite, and so is the loss of a forward pass over the first micro-batch of the next step.
  /// (Before the first step there is no forward pass, because nothing has changed the initial values yet; and none
  /// unless `batch_is_readable`.) Of a team, rank 0 then has the moments of all ranks until the next step, and what
  /// they carry.
  void require_finite(bool batch_is_readable = true);
  /// The summed loss of that forward pass.
  double next_loss();
  /// Mean losses over eval_sample(), and over the `whole` validation text if asked for. `stop` is asked before every
  /// batch; if it is requested, the result is nullopt. Throws DivergedError if a loss is not finite.
  std::optional<EvalReport> evaluate(const StopRequest& stop = {}, bool whole = false);
  /// The mean loss over the same sample of the validation text, or over the `whole` text. `stop` and errors as above.
  /// Requires: the task has validation data.
  std::optional<double> validation_loss(const StopRequest& stop = {}, bool whole = false);
  /// The share of the validation batches that an evaluation covers: more than 0, at most 1. Requires: the task has
  /// validation data.
  double val_share() const;
  /// The number of batches of an evaluation, of both texts together: those of the samples, or with the `whole`
  /// validation text.
  std::int64_t eval_batches(bool whole) const;

 private:
  // What rank 0 has the others do. It sends learning rates, because only rank 0 knows when the run is to end.
  struct Order {
    enum class Kind : std::int64_t { step, mean_loss, full_and_sampled_loss, accuracy, restore, collect, leave };
    Kind kind;
    double rate = 0;
    Part part = Part::train;
    std::int64_t most = 0;
    bool heeds_stops = false;  // of any rank: rank 0 may be asked to stop as well
    bool has_values = false;   // they have changed since the last order, and follow
  };
  void lead(Order order);
  void obey(const Order& order, const StopRequest& asked);
  std::optional<double> sum_micro_batches(double scale, const StopRequest& stop);
  std::optional<StepReport> run_step(double rate, const StopRequest& stop);
  Tensor loss_of(std::int64_t micro);
  std::optional<double> shared_accuracy(std::int64_t most, const StopRequest& stop);
  void share_all_values();
  void move_state(bool to_leader);
  double finite_loss(const MeanLoss& loss) const;
  [[noreturn]] void diverged(const char* what, double value, double scale, CarriedStates::Rewind& carried);

  Config config_;
  const Task& task_;
  Team& team_;
  std::unique_ptr<TrainableModel> model_;
  CarriedStates carried_;
  std::vector<LrPhase> schedule_;
  Tape tape_;
  GradientSum gradients_;
  Batch batch_;
  std::vector<double> losses_;  // of the micro-batches of a step
  std::int64_t steps_ = 0;
  std::uint64_t shared_version_;  // of the values that all ranks have
  const int exceptions_;          // in flight when this object was made
};

}  // namespace maki
