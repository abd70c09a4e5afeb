// How many steps fit into a time, and when that is decided.
#include "train/loop/time_limit.h"

#include <cmath>

#include "tests/catch.h"
#include "train/run/config/configured_optimizer.h"

using namespace maki;

namespace {

Config intervals() {
  Config config;
  config.eval_interval = 7;
  config.checkpoint_interval = 5;
  config.sample_interval = 11;
  config.max_steps = config.lr_decay_steps = 100;
  config.warmup_steps = 4;
  return config;
}

WorkTimes some_times() {
  WorkTimes times;
  times.add(Work::step, 6, 3);
  times.add(Work::eval_batch, 0.5);
  times.add(Work::checkpoint, 3);
  times.add(Work::sample, 1.5);
  return times;
}

// What a session does after `finished` steps, written out.
double simulated(std::int64_t finished, std::int64_t max_steps, const EvalExtent& extent) {
  double seconds = 0;
  for (std::int64_t step = finished + 1; step <= max_steps; ++step) {
    seconds += 2;
    const bool end = step == max_steps;
    if (end || step % 5 == 0) seconds += 3;
    if (end) {
      seconds += 0.5 * static_cast<double>(extent.last);
    } else if (step % 7 == 0) {
      seconds += 0.5 * static_cast<double>(extent.usual);
    }
    if (!end && step % 11 == 0) seconds += 1.5;
  }
  return seconds;
}

// A limit whose clock the test sets.
struct Clock {
  double seconds = 0;
  TimeLimit limit(double total, std::int64_t most = 1000) {
    return {
        .seconds = total, .elapsed = [this] { return seconds; }, .most_steps = most, .record = [](const Config&) {}};
  }
};

}  // namespace

TEST_CASE("the time that a run still takes is that of its steps and of what is due between them") {
  const EvalExtent extent{4, 20};
  for (const std::int64_t finished : {0, 1, 6, 7, 34, 35}) {
    for (std::int64_t steps = finished + 1; steps < finished + 80; ++steps) {
      INFO(finished << " " << steps);
      REQUIRE(std::abs(seconds_to_finish(some_times(), intervals(), extent, finished, steps) -
                       simulated(finished, steps, extent)) < 1e-9);
    }
  }
}

TEST_CASE("the steps that fit into a time are the most that do, and at least one more") {
  const EvalExtent extent{4, 20};
  for (double left = 0; left < 300; left += 1.25) {
    const std::int64_t steps = steps_that_fit(some_times(), intervals(), extent, 10, 60, left);
    INFO(left << ": " << steps);
    REQUIRE(steps > 10);
    REQUIRE(steps <= 60);
    if (steps > 11) REQUIRE(simulated(10, steps, extent) <= left);
    if (steps < 60) REQUIRE(simulated(10, steps + 1, extent) > left);
  }
  REQUIRE(steps_that_fit(some_times(), intervals(), extent, 10, 5, 1e9) == 11);
}

TEST_CASE("the last evaluation covers the whole text if that takes at most 15 % of the time") {
  const EvalExtent extent{4, 30};  // 2 and 15 seconds
  const auto last = [&](double seconds) { return affordable(extent, some_times(), seconds).last; };
  REQUIRE(last(101) == 30);
  REQUIRE(last(100) == 30);
  REQUIRE(last(99) == 4);
  REQUIRE(affordable(extent, some_times(), 99).usual == 4);
  REQUIRE(affordable(extent, {}, 0).last == 30);  // nothing is known yet
}

TEST_CASE("a new last step continues the schedule from the rate that it has reached, and ends it there") {
  for (const char* schedule : {"linear", "cosine", "wsd"}) {
    INFO(schedule);
    Config config = intervals();
    config.schedule = schedule;
    config.learning_rate = 0.5;
    config.min_lr = 0.125;
    config.warmup_steps = 4;
    const std::vector<LrPhase> before = lr_phases(config);
    for (const std::int64_t finished : {4, 10, 30}) {
      Config changed = config;
      set_last_step(changed, finished, 60);
      REQUIRE_NOTHROW(validate(changed));
      REQUIRE(changed.max_steps == 60);
      const std::vector<LrPhase> after = lr_phases(changed);
      for (std::int64_t step = 0; step <= finished; ++step)
        REQUIRE(learning_rate_at(after, step) == learning_rate_at(before, step));
      for (std::int64_t step = finished; step < 60; ++step)
        REQUIRE(learning_rate_at(after, step + 1) <= learning_rate_at(after, step));
      REQUIRE(learning_rate_at(after, 60) == 0.125);
    }
  }
  Config constant = intervals();
  constant.schedule = "constant";
  set_last_step(constant, 10, 60);
  REQUIRE(constant.max_steps == 60);
  REQUIRE(constant.phases.empty());
}

TEST_CASE(
    "a phase that continues from the rate that was reached is no new start of the schedule, and any other is one") {
  Config config = intervals();
  config.schedule = "linear";
  REQUIRE(last_begun_phase(config, 1000).start == 0);
  set_last_step(config, 10, 60);
  set_last_step(config, 40, 80);
  REQUIRE(config.phases.size() == 2);
  REQUIRE(last_begun_phase(config, 1000).start == 0);
  const Phase first = last_begun_phase(config, 1000), last = last_phase(config);
  REQUIRE(first.learning_rate == config.learning_rate);
  REQUIRE(first.learning_rate > last.learning_rate);
  REQUIRE(first.warmup_steps == config.warmup_steps);
  Config rewarmed = config;
  rewarmed.phases.push_back({.start = 50, .end = 90, .learning_rate = 1e-3, .min_lr = 0, .warmup_steps = 0});
  REQUIRE(last_begun_phase(rewarmed, 51).start == 50);
  REQUIRE(last_begun_phase(rewarmed, 50).start == 0);
  set_last_step(rewarmed, 70, 200);
  REQUIRE(last_begun_phase(rewarmed, 1000).start == 50);
  REQUIRE(last_begun_phase(rewarmed, 1000) == rewarmed.phases[2]);
  REQUIRE(last_begun_phase(rewarmed, 50) == first);
  Config warmed = config;
  set_last_step(warmed, 50, 90);
  warmed.phases.back().warmup_steps = 2;
  REQUIRE(last_begun_phase(warmed, 1000).start == 50);
  Config again = config;  // begun once more at the first step
  again.phases = {{.start = 0, .end = 50, .learning_rate = 1e-3, .min_lr = 0, .warmup_steps = 7}};
  REQUIRE(last_begun_phase(again, 1000) == again.phases[0]);
  Config early = intervals();  // decided during the warmup
  early.schedule = "linear";
  early.warmup_steps = 20;
  set_last_step(early, 3, 60);
  set_last_step(early, 5, 80);
  REQUIRE(early.phases.back().warmup_steps > 0);
  REQUIRE(last_begun_phase(early, 1000).start == 0);
  REQUIRE(last_begun_phase(early, 1000).warmup_steps == 20);
}

TEST_CASE("a new last step during the warmup completes the warmup, from about the rate that it has reached") {
  Config config = intervals();
  config.schedule = "linear";
  config.learning_rate = 1;
  config.min_lr = 0;
  config.warmup_steps = 40;
  for (const std::int64_t finished : {0, 3, 9, 25, 39}) {
    Config changed = config;
    set_last_step(changed, finished, 400);
    const std::vector<LrPhase> rates = lr_phases(changed);
    INFO(finished);
    const double reached = static_cast<double>(finished + 1) / 40;
    REQUIRE(learning_rate_at(rates, finished) >= 0.99 * reached);
    REQUIRE(learning_rate_at(rates, finished) <= 2.01 * reached);
    REQUIRE(learning_rate_at(rates, finished + 40) > 0.85);
    REQUIRE(learning_rate_at(rates, 400) == 0);
    set_last_step(changed, finished + 1, 300);  // and again
    REQUIRE(learning_rate_at(lr_phases(changed), finished + 41) > 0.8);
  }
}

TEST_CASE("the number of steps is decided after a tenth of the time, and again where the machine changes its speed") {
  Clock clock;
  StepBudget budget(clock.limit(100));
  Config config = intervals();
  config.eval_interval = config.checkpoint_interval = config.sample_interval = 1000;
  WorkTimes times;
  const auto decide = [&](double seconds, double step, std::int64_t finished) {
    clock.seconds = seconds;
    times.add(Work::step, 10 * step, 10);
    const auto steps = budget.decide(times, config, {}, finished);
    if (steps) config.max_steps = *steps;
    return steps;
  };
  REQUIRE_FALSE(decide(9.9, 0.5, 10));
  REQUIRE(decide(10, 0.5, 20) == 200);  // 90 seconds are left for steps of 0.5 seconds
  REQUIRE_FALSE(decide(54, 0.9, 40));   // not yet: half of the time that was left passes at 55 seconds
  times.forget(Work::step);
  REQUIRE_FALSE(decide(55, 0.5, 110));  // as expected
  REQUIRE(times.count(Work::step) == 0);
  REQUIRE(decide(78, 1, 130) == 152);  // only the steps since the last decision count
  REQUIRE_FALSE(decide(80, 1, 132));
  REQUIRE(times.count(Work::step) == 10);  // nothing was decided
  times.forget(Work::step);
  REQUIRE(decide(80.5, 0.25, 141) == 219);  // the machine is faster, and half of the steps that were left are done
  REQUIRE(decide(97, 1, 200) == 203);
  times.forget(Work::step);
  REQUIRE_FALSE(decide(98.5, 0.1, 202));  // too late to gain anything
}

TEST_CASE("a run that would end late is shortened in the last part of its time as well, and after it") {
  for (const double now : {99., 130.}) {  // of 100 seconds: the first steps took longer than all were to take
    Clock clock;
    StepBudget budget(clock.limit(100));
    Config config = intervals();
    config.eval_interval = config.checkpoint_interval = config.sample_interval = 1000;
    WorkTimes times;
    clock.seconds = now;
    times.add(Work::step, 90, 30);
    REQUIRE(budget.decide(times, config, {}, 30) == 31);
  }
}

TEST_CASE("a decision waits for steps to be timed, and never exceeds the most that help") {
  Clock clock;
  StepBudget budget(clock.limit(100, 120));
  WorkTimes times;
  const Config config = intervals();
  clock.seconds = 50;
  times.add(Work::step, 2, 2);
  REQUIRE_FALSE(budget.decide(times, config, {}, 2));
  times.add(Work::step, 0.25, 1);
  times.add(Work::step, 0.25, 7);
  REQUIRE(budget.decide(times, config, {}, 10) == 120);
}
