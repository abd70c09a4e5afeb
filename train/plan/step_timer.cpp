#include "train/plan/step_timer.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "train/loop/tasks.h"
#include "train/loop/trainer.h"

namespace maki {

double MeasuredStepTimer::seconds_per_step(const Config& config, const VocabSizes& vocab) {
  using Clock = std::chrono::steady_clock;
  const std::unique_ptr<Task> task = make_random_task(config, vocab, kTimedSteps * config.grad_accum);
  Trainer trainer(config, *task);
  trainer.step();
  std::vector<double> seconds;
  for (std::int64_t i = 1; i < kTimedSteps; ++i) {
    const auto begin = Clock::now();
    trainer.step();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::ranges::nth_element(seconds, seconds.begin() + 1);
  return seconds[1];
}

}  // namespace maki
