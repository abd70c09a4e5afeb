// The time that a run may take. How many steps fit into it is decided while the run goes on, from the times that its
// parts have taken so far, and recorded in its configuration: a later phase of the schedule and a new max_steps. A run
// that is resumed keeps its number of steps and has no limit.
//
// Everything here is a function of the seconds that it is given; nothing reads a clock.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "train/run/config/config.h"

namespace maki {

struct TimeLimit {
  double seconds = 0;               ///< from the start of the program to the end of the run
  std::function<double()> elapsed;  ///< seconds since that start
  std::int64_t most_steps = 0;      ///< more steps would not help, however much time is left
  /// Makes a configuration with a new number of steps durable, before the first step that depends on it.
  std::function<void(const Config&)> record;
};

/// What the time of a run is spent on.
enum class Work : std::uint8_t { step, eval_batch, checkpoint, sample };

/// How long each kind of work has taken so far.
class WorkTimes {
 public:
  /// With a count of 0, the time is added to that of the others of its kind.
  void add(Work work, double seconds, std::int64_t count = 1);
  std::int64_t count(Work work) const { return at(work).count; }
  /// Seconds for one of these; 0 if there was none yet.
  double mean(Work work) const;
  /// Forgets one kind, because the machine may have become busier or idle since.
  void forget(Work work) { times_[static_cast<std::size_t>(work)] = {}; }

 private:
  struct Total {
    double seconds = 0;
    std::int64_t count = 0;
  };
  const Total& at(Work work) const { return times_[static_cast<std::size_t>(work)]; }
  std::array<Total, 4> times_;
};

/// Numbers of batches of the evaluations during a run and of its last one, of training and validation text together.
struct EvalExtent {
  std::int64_t usual = 0, last = 0;
};

/// The extent, but with a last evaluation like the others if it would take too large a part of a run of `seconds`.
EvalExtent affordable(const EvalExtent& extent, const WorkTimes& times, double seconds);

/// Seconds that a run of `max_steps` steps still takes after `finished` of them, with what is due at the intervals of
/// the configuration and at the end.
double seconds_to_finish(const WorkTimes& times, const Config& config, const EvalExtent& extent, std::int64_t finished,
                         std::int64_t max_steps);
/// The largest number of steps, above `finished` and at most `most`, with which the run ends within `seconds_left`;
/// finished + 1 if none does.
std::int64_t steps_that_fit(const WorkTimes& times, const Config& config, const EvalExtent& extent,
                            std::int64_t finished, std::int64_t most, double seconds_left);

/// Ends a run at `max_steps` steps instead, of which `finished` are done. A schedule that ends goes on from the
/// learning rate of the next step and ends there, as a new phase; one that does not end stays as it is.
void set_last_step(Config& config, std::int64_t finished, std::int64_t max_steps);

/// The last phase, among those that begin before `step`, in which the schedule does not simply continue from the rate
/// that it has reached: the last one that somebody asked for. That with which the run began if there is no other.
Phase last_begun_phase(const Config& config, std::int64_t step);

/// Decides how many steps fit: when a tenth of the time that was left at the start has passed, or half of the steps are
/// done, and then whenever half of the time or of the steps that were left have passed, in case the machine has become
/// busier or idle in the meantime. Not before three steps have been timed, unless they are very long, and in the last
/// fiftieth of the time, or after it, only if the run would end late by another fiftieth.
class StepBudget {
 public:
  explicit StepBudget(TimeLimit limit) : limit_(std::move(limit)), begin_(limit_.elapsed()) {}

  /// The new number of steps, if it is time to decide and the number changes by more than a few percent. `times` are
  /// those of the run so far; each decision forgets those of steps, which are then measured anew.
  std::optional<std::int64_t> decide(WorkTimes& times, const Config& config, const EvalExtent& extent,
                                     std::int64_t finished);
  const TimeLimit& limit() const { return limit_; }

 private:
  TimeLimit limit_;
  double begin_;                      ///< the time at which this object was made
  std::optional<double> decided_at_;  ///< the time of the last decision
  std::int64_t next_step_ = 0;        ///< the step after which the next one is due at the latest
};

}  // namespace maki
