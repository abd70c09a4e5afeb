// A training session: the loop around the trainer that evaluates, saves, logs and shows, and can be interrupted at any
// time.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>

#include "train/checkpoint.h"
#include "train/metrics.h"
#include "train/progress.h"
#include "train/run_directory.h"
#include "train/trainer.h"

namespace maki {

class Session {
 public:
  /// The trainer stands at the step to go on from; the run directory exists and is locked. All outlive the session.
  Session(const Config& config, const Dataset& data, Trainer& trainer, const RunDirectory& run);

  /// Trains to max_steps. Returns 0, or the exit code of the interrupt after the state was saved.
  int train();

 private:
  bool has(std::int64_t step) const;
  void save();
  void prune();
  bool evaluate();  // false: interrupted
  void log(const StepReport& report);
  void finish();
  void find_best();
  std::string loss_text(double loss) const;

  const Config& config_;
  const Dataset& data_;
  Trainer& trainer_;
  const RunDirectory& run_;
  Metrics metrics_;
  Progress progress_;
  CheckpointState state_;
  std::optional<Best> best_;
  std::set<std::string> pruning_notes_;
  double last_val_loss_ = 0;
  int rises_ = 0;
  std::chrono::steady_clock::time_point start_;
  double seconds_in_steps_ = 0;
  std::int64_t timed_steps_ = 0;
};

}  // namespace maki
