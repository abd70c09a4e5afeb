// Measured times of training steps, on which a plan is based.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "train/loop/task.h"
#include "train/loop/team/team.h"
#include "train/run/config/config.h"
#include "train/run/config/tasks.h"

namespace maki {

struct StepTime {
  double seconds = 0;       ///< by the clock
  double idle_seconds = 0;  ///< by the CPU time, which is what it would take if no other program used the machine
};

/// Times the steps of a configuration. A plan knows this interface only, so tests give it times of their own.
class StepTimer {
 public:
  virtual ~StepTimer() = default;
  /// The time of one training step. Spends about kTimedSteps times as long.
  virtual StepTime time_step(const Config& config, const VocabSizes& vocab) = 0;

  /// Steps of one measurement: one that allocates the memory, and three that are timed. More would measure fewer
  /// shapes.
  static constexpr std::int64_t kTimedSteps = 4;
};

/// The random data on which a configuration is timed.
std::unique_ptr<Task> random_task_to_time(const Config& config, const VocabSizes& vocab);

/// Trains on random tokens and takes the median times; of a team, on rank 0.
class MeasuredStepTimer final : public StepTimer {
 public:
  explicit MeasuredStepTimer(Team& team = no_team()) : team_(team) {}
  StepTime time_step(const Config& config, const VocabSizes& vocab) override;

 private:
  Team& team_;
};

/// Asks another timer for each configuration once.
class RememberedTimes final : public StepTimer {
 public:
  explicit RememberedTimes(StepTimer& timer) : timer_(timer) {}
  StepTime time_step(const Config& config, const VocabSizes& vocab) override;

 private:
  StepTimer& timer_;
  std::map<std::string, StepTime> times_;  // by training_toml()
};

}  // namespace maki
