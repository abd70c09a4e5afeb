#include "train/loop/time_limit.h"

#include <algorithm>
#include <cmath>

#include "train/run/config/configured_optimizer.h"

namespace maki {
namespace {

// The first decision is early enough for a schedule that ends on time. Each later one comes after half of the time or
// of the steps that were left, whichever is first: a machine that becomes busy delays the end, and one that becomes
// idle would end the run early. In the last part of the time, and after it, only an end that would be late by as much
// is decided: less is little to win.
constexpr double kFirstPart = 0.1, kLastPart = 0.02;
// Steps that must have been timed before a decision: an average over fewer would follow the noise of the machine,
// unless they have taken this part of the time.
constexpr std::int64_t kMinTimedSteps = 3;
constexpr double kLongPart = 0.05;
// A change of the number of steps by less than this part of it is not worth a phase of the schedule. One that would
// make the run longer has to be larger, so that a number that lies between two whole ones does not go to and fro.
constexpr double kShorter = 0.01, kLonger = 0.03;

// How often something that is due at every multiple of `interval` is due after the steps from `finished` + 1 up to the
// one before the last.
double times_due(std::int64_t interval, std::int64_t finished, std::int64_t max_steps) {
  if (interval <= 0) return 0;
  const std::int64_t times = (max_steps - 1) / interval - finished / interval;
  return static_cast<double>(times);
}

}  // namespace

void WorkTimes::add(Work work, double seconds, std::int64_t count) {
  Total& total = times_[static_cast<std::size_t>(work)];
  total.seconds += seconds;
  total.count += count;
}

double WorkTimes::mean(Work work) const {
  const Total& total = at(work);
  return total.count == 0 ? 0 : total.seconds / static_cast<double>(total.count);
}

double seconds_to_finish(const WorkTimes& times, const Config& c, const EvalExtent& extent, std::int64_t finished,
                         std::int64_t max_steps) {
  const auto batches = static_cast<double>(extent.usual), last = static_cast<double>(extent.last);
  return times.mean(Work::step) * static_cast<double>(max_steps - finished) +
         times.mean(Work::eval_batch) * (batches * times_due(c.eval_interval, finished, max_steps) + last) +
         times.mean(Work::checkpoint) * (times_due(c.checkpoint_interval, finished, max_steps) + 1) +
         times.mean(Work::sample) * times_due(c.sample_interval, finished, max_steps);
}

EvalExtent affordable(const EvalExtent& extent, const WorkTimes& times, double seconds) {
  constexpr double kMaxLastEvaluationShare = 0.15;  // of the time; beyond, training gains more from it
  const bool whole =
      times.mean(Work::eval_batch) * static_cast<double>(extent.last) <= kMaxLastEvaluationShare * seconds;
  return {extent.usual, whole ? extent.last : extent.usual};
}

std::int64_t steps_that_fit(const WorkTimes& times, const Config& config, const EvalExtent& extent,
                            std::int64_t finished, std::int64_t most, double seconds_left) {
  std::int64_t low = finished + 1, high = std::max(low, most);  // low fits, or nothing does
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (seconds_to_finish(times, config, extent, finished, middle) <= seconds_left) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

void set_last_step(Config& config, std::int64_t finished, std::int64_t max_steps) {
  config.max_steps = max_steps;
  if (!schedule_ends(config)) return;
  const Phase current = last_phase(config);
  Phase next{.start = finished,
             .end = max_steps,
             .learning_rate = learning_rate_at(lr_phases(config), finished),
             .min_lr = current.min_lr,
             .warmup_steps = 0};
  if (const std::int64_t warm = finished - current.start; warm < current.warmup_steps) {
    // The first step of a warmup over w steps has the rate peak / w, which is about the rate that has been reached.
    next.learning_rate = current.learning_rate;
    next.warmup_steps = std::max<std::int64_t>(1, current.warmup_steps / (warm + 1));
  }
  next.min_lr = std::min(next.min_lr, next.learning_rate);
  config.phases.push_back(next);
}

Phase last_begun_phase(const Config& config, std::int64_t step) {
  Config before = config;
  before.phases.clear();
  Phase begun = last_phase(before);
  for (const Phase& phase : phases_before(config, step)) {
    Config continued = before;
    set_last_step(continued, phase.start, phase.end);
    const bool goes_on = continued.phases.size() > before.phases.size() && continued.phases.back() == phase;
    if (!goes_on) begun = phase;
    before.phases.push_back(phase);
  }
  return begun;
}

std::optional<std::int64_t> StepBudget::decide(WorkTimes& times, const Config& config, const EvalExtent& extent,
                                               std::int64_t finished) {
  const std::int64_t timed = times.count(Work::step);
  const double spent = times.mean(Work::step) * static_cast<double>(timed);
  if (timed < kMinTimedSteps && spent < kLongPart * limit_.seconds) return std::nullopt;
  const double elapsed = limit_.elapsed(), left = limit_.seconds - elapsed;
  const bool due = decided_at_
                       ? 2 * left <= limit_.seconds - *decided_at_ || finished >= next_step_
                       : elapsed - begin_ >= kFirstPart * (limit_.seconds - begin_) || 2 * finished >= config.max_steps;
  if (!due) return std::nullopt;
  const EvalExtent evaluations = affordable(extent, times, limit_.seconds);
  const double late = seconds_to_finish(times, config, evaluations, finished, config.max_steps) - left;
  if (left < kLastPart * limit_.seconds && late < kLastPart * limit_.seconds) return std::nullopt;
  const std::int64_t fit = steps_that_fit(times, config, evaluations, finished, limit_.most_steps, left);
  times.forget(Work::step);
  const auto change = static_cast<double>(fit - config.max_steps);
  const bool worth_it = std::abs(change) > (change < 0 ? kShorter : kLonger) * static_cast<double>(config.max_steps);
  decided_at_ = elapsed;
  next_step_ = finished + std::max<std::int64_t>(1, ((worth_it ? fit : config.max_steps) - finished) / 2);
  return worth_it ? std::optional(fit) : std::nullopt;
}

}  // namespace maki
