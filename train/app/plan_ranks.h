// What a plan says about several ranks (mpirun -n RANKS maki train), computed on one.
#pragma once

#include <optional>

#include "train/app/command.h"
#include "train/app/flags.h"
#include "train/app/report.h"
#include "train/loop/plan/plan.h"
#include "train/loop/plan/step_timer.h"
#include "train/loop/team/step_cost.h"

namespace maki {

/// --ranks, and --latency and --bandwidth of the network between them.
class RankOptions {
 public:
  explicit RankOptions(const Command& command);

  std::int64_t ranks() const { return ranks_; }
  /// Throws Error if a network was described for one rank.
  NetworkSpeed network() const;

 private:
  Command command_;
  std::int64_t ranks_ = 1;
  double latency_ = 1e6 * NetworkSpeed().seconds_per_message;
  double bandwidth_ = 8e-9 / NetworkSpeed().seconds_per_byte;
};

/// Times the steps of ranks on this machine alone: the micro-batches of the rank that has most, and by the model of
/// step_cost.h what it sends. The update counts as a whole, although each rank does a part of it.
class RankStepTimer final : public StepTimer {
 public:
  /// Requires: the flags outlive the timer.
  RankStepTimer(const RankOptions& options, const ConfigFlags& flags)
      : ranks_(options.ranks()), network_(options.network()), flags_(flags) {}
  StepTime time_step(const Config& config, const VocabSizes& vocab) override;

  /// Adds what the ranks take of memory, time and network for a step of this configuration, of which steps have been
  /// timed, and how many of them pay. Adds nothing for one rank.
  void add_ranks(const Plan& plan, Report& report);

 private:
  StepWork measured_work(const Config& divided, std::int64_t length);
  Config divided(Config config) const;

  std::int64_t ranks_;
  NetworkSpeed network_;
  const ConfigFlags& flags_;
  std::optional<VocabSizes> vocab_;  // of the text
};

}  // namespace maki
