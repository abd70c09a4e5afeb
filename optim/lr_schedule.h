// Learning-rate schedules as pure functions of the step s, counted from 0. Every schedule begins with a linear warmup
// over w = warmup_steps steps: lr · (s + 1) / w for s < w, even where that is below min_lr or s is not below
// decay_steps. What follows is a decay, known by its name. To add one, add a row to the table in lr_schedule.cpp, from
// which the configuration, its help and its messages follow.
//
// Thread safety: all functions may be called on several threads at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace maki {

struct LrSchedule;

/// The learning rate after the warmup: a row of the table in lr_schedule.cpp, or one of a program that uses maki.
struct LrDecay {
  const char* name;
  const char* description;  ///< the formula and its source, for readers
  bool ends;                ///< the rate stays at min_lr from step decay_steps on; the others do not use decay_steps
  /// The learning rate of step s. Requires: s >= warmup_steps.
  double (*rate)(const LrSchedule& schedule, std::int64_t s);
  bool constant = false;  ///< the rate never falls, and min_lr is not used
};

/// The rows of the table. They live as long as the program.
std::span<const LrDecay> lr_decays();
/// Their names, in the same order.
std::vector<std::string> lr_decay_names();
/// The row of this name, never null. Throws Error, suggesting the most similar name, for any other word.
const LrDecay* lr_decay_named(std::string_view name);

/// A schedule: a call returns the learning rate of a step.
struct LrSchedule {
  const LrDecay* decay = lr_decay_named("cosine");  ///< must not be null, and must outlive the schedule
  double learning_rate = 1e-3;                      ///< the peak
  double min_lr = 0;
  std::int64_t warmup_steps = 0;
  /// Counted from step 0, warmup included. May be less than the warmup, and 0: a decay that ends is then at min_lr from
  /// the end of the warmup on.
  std::int64_t decay_steps = 0;

  /// The learning rate of step s. Throws Error unless s >= 0. Requires: validate() does not throw.
  double operator()(std::int64_t s) const;
  /// Throws Error unless 0 <= min_lr <= learning_rate, both are finite, and no number of steps is negative.
  void validate() const;
};

/// A schedule that applies from step `start` on and counts its own steps from there.
struct LrPhase {
  std::int64_t start = 0;
  LrSchedule schedule;
};
/// The learning rate of step s according to the last phase with start <= s. Throws Error if s is negative, or if there
/// are no phases or the first does not start at step 0. Requires: phases are in ascending order of `start`.
double learning_rate_at(std::span<const LrPhase> phases, std::int64_t s);

}  // namespace maki
