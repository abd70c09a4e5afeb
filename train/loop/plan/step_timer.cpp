#include "train/loop/plan/step_timer.h"

#include <algorithm>
#include <chrono>
#include <time.h>
#include <vector>

#include "train/loop/tasks.h"
#include "train/loop/trainer.h"

namespace maki {
namespace {

double seconds_of(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

std::unique_ptr<Task> random_task_to_time(const Config& config, const VocabSizes& vocab) {
  return make_random_task(config, vocab, StepTimer::kTimedSteps * config.grad_accum);
}

// This thread takes part in all of the work of a step, and sleeps when it waits for others, so its own CPU time is what
// a step would take on an idle machine.
StepTime MeasuredStepTimer::time_step(const Config& config, const VocabSizes& vocab) {
  const std::unique_ptr<Task> task = random_task_to_time(config, vocab);
  Trainer trainer(config, *task, trainable_model(config, *task), /*initial_values=*/true, team_);
  std::vector<double> clock, own;
  const auto time_one = [&] {
    const double begin = seconds_of(CLOCK_MONOTONIC), begin_own = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    trainer.step();
    clock.push_back(seconds_of(CLOCK_MONOTONIC) - begin);
    own.push_back(seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin_own);
  };
  // The first step allocates memory, and counts only if it is so long that this makes no difference.
  constexpr double kLongStep = 1;  // seconds
  time_one();
  if (clock.front() < kLongStep) {
    clock.clear();
    own.clear();
    for (std::int64_t i = 1; i < kTimedSteps; ++i) time_one();
  }
  const double seconds = median(clock);
  return {.seconds = seconds, .idle_seconds = std::min(seconds, median(own))};
}

StepTime RememberedTimes::time_step(const Config& config, const VocabSizes& vocab) {
  const std::string key = training_toml(config);
  const auto known = times_.find(key);
  return known != times_.end() ? known->second : times_[key] = timer_.time_step(config, vocab);
}

}  // namespace maki
