// A training session: the loop around the trainer that evaluates, saves checkpoints, logs and shows progress. It can be
// interrupted at any time.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "train/run/checkpoint.h"
#include "train/run/metrics.h"
#include "train/loop/progress.h"
#include "train/run/run_directory.h"
#include "train/loop/trainer.h"

namespace maki {

class Session {
 public:
  /// Requires: the trainer has the state of the step to continue from, and the run directory exists and is locked. All
  /// arguments outlive the session. Throws CheckpointError if the run directory cannot be read or written, and Diverged
  /// if the best checkpoint, measured again, has a loss that is not finite.
  Session(const Config& config, const Dataset& data, Trainer& trainer, const RunDirectory& run);

  /// Trains up to max_steps, or until early stopping. Returns 0, or the exit code of the interrupt after saving the
  /// state. Throws CheckpointError if something cannot be saved, and Diverged, naming the last good checkpoint and the
  /// command that returns to it. A state that is not finite is never saved.
  int train();

 private:
  bool has(std::int64_t step) const;
  Config config_at(std::int64_t step) const;
  void save();
  void prune();
  bool evaluate(const std::function<bool()>& stop, bool whole);  // false: interrupted
  int train_to_end();
  int stop_interrupted();
  std::string way_back() const;
  std::optional<std::int64_t> overfitting_with(const EvalReport* newest) const;
  void say_overfitting(std::int64_t best, bool ends);
  void write_sample();
  void log(const StepReport& report);
  void say_time(double seconds);
  void finish();
  void say_best();
  void find_best();
  std::optional<double> measure_again(std::int64_t step, bool whole);
  std::string loss_text(double loss) const;
  std::string share_text(double share) const;

  const Config& config_;
  const Dataset& data_;
  Trainer& trainer_;
  const RunDirectory& run_;
  Metrics metrics_;
  Progress progress_;
  CheckpointState state_;
  // The loss of the best checkpoint is over the share of the validation text that every evaluation covers.
  std::optional<Best> best_;
  std::set<std::string> pruning_notes_;
  std::optional<EvalReport> last_evaluation_;
  bool stopped_early_ = false, warned_ = false;
  std::chrono::steady_clock::time_point start_;
  double seconds_in_steps_ = 0;
  std::int64_t timed_steps_ = 0, steps_here_ = 0;
  double seconds_of_estimate_ = 0;
};

}  // namespace maki
