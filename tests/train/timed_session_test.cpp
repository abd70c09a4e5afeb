// Runs with a time limit: they end on time on machines that are simulated, and what was decided is recorded.
#include <cmath>

#include "tests/catch.h"
#include "tests/train/captured_run.h"
#include "train/loop/time_limit.h"
#include "train/run/config/configured_optimizer.h"

using namespace maki;
using namespace maki::tests;

namespace {

// A run of 100 seconds on a machine that is `load` times slower from `from` until `until`. `planned` steps were
// expected; a step takes 0.05 seconds without load. Returns when the run ends.
double simulated_end(std::int64_t planned, double load, double from, double until) {
  constexpr double kStep = 0.05, kEvalBatch = 0.02;
  const EvalExtent extent{10, 50};
  double clock = 2;  // reading and planning
  StepBudget budget(
      {.seconds = 100, .elapsed = [&] { return clock; }, .most_steps = 1'000'000, .record = [](const Config&) {}});
  Config config;
  config.max_steps = config.lr_decay_steps = planned;
  config.eval_interval = config.checkpoint_interval = std::max<std::int64_t>(1, planned / 8);
  config.sample_interval = 0;
  WorkTimes times;
  const auto work = [&](Work kind, double seconds, std::int64_t count) {
    const double begin = clock;
    const bool loaded = begin >= from && begin < until;
    clock += seconds * static_cast<double>(count) * (loaded ? load : 1);
    times.add(kind, clock - begin, count);
  };
  work(Work::eval_batch, kEvalBatch, extent.usual);
  for (std::int64_t step = 0; step < config.max_steps;) {
    work(Work::step, kStep, 1);
    ++step;
    if (step == config.max_steps) break;
    if (step % config.eval_interval == 0) work(Work::eval_batch, kEvalBatch, extent.usual);
    if (const auto steps = budget.decide(times, config, extent, step)) set_last_step(config, step, *steps);
  }
  REQUIRE_NOTHROW(validate(config));
  REQUIRE(config.phases.size() < 20);
  work(Work::eval_batch, kEvalBatch, extent.last);
  return clock;
}

}  // namespace

TEST_CASE("a run ends within a twentieth of its time, whatever the plan expected and whenever the machine is busy") {
  for (const std::int64_t planned : {100, 400, 2000, 10'000, 50'000}) {
    for (const double load : {1., 1.5, 2., 3.}) {
      for (double from = 0; from < 100; from += 7.5) {
        for (double until = from + 5; until < 115; until += 17.5) {
          const double end = simulated_end(planned, load, from, until);
          INFO(planned << " steps, load " << load << " from " << from << " to " << until);
          REQUIRE(end < 105);
          REQUIRE(end > 95);
        }
      }
    }
  }
}

namespace {

Config timed_run() {
  Config config = smallest_config();
  config.val_fraction = 0.25;
  config.max_steps = config.lr_decay_steps = 50;
  config.eval_interval = config.checkpoint_interval = 10;
  config.keep_last = 100;
  config.eval_batches = 0;
  config.schedule = "linear";
  config.learning_rate = 0.05;
  config.min_lr = 0;
  config.warmup_steps = 3;
  config.counting = config.early_stop = false;
  return config;
}

std::string letters_text() {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "abc";
  return text;
}

// A run whose steps take a quarter of a second each, and all else no time; returns the configuration that it recorded.
Config train_for(double seconds, CapturedRun& run) {
  TextTrainer trainer(run.config, run.data);
  Config recorded = run.config;
  SessionListener nobody;
  TimeLimit limit{.seconds = seconds,
                  .elapsed = [&] { return 0.25 * static_cast<double>(trainer.steps()); },
                  .most_steps = 1000,
                  .record =
                      [&](const Config& now) {
                        recorded = now;
                        REQUIRE(trainer.steps() == now.phases.back().start);
                      }};
  REQUIRE(Session(run.config, trainer, run.directory, nobody, {.limit = limit}).train() == SessionEnd::finished);
  REQUIRE(trainer.steps() == recorded.max_steps);
  return recorded;
}

std::string last_checkpoint(const CapturedRun& run) {
  return read_bytes(run.directory.checkpoint_file(run.directory.last().value()));
}

}  // namespace

TEST_CASE("a session with a time limit ends on time, longer or shorter than it began, with its schedule complete") {
  for (const double seconds : {5., 12.5, 20.}) {
    CapturedRun run(timed_run(), letters_text());
    const Config recorded = train_for(seconds, run);
    const auto steps = static_cast<std::int64_t>(4 * seconds);
    INFO(seconds);
    REQUIRE(recorded.max_steps == steps);
    REQUIRE(run.directory.last() == steps);
    REQUIRE(recorded.phases.size() == (steps == 50 ? 0 : 1));
    REQUIRE(learning_rate_at(lr_phases(recorded), steps) == 0);
  }
}

TEST_CASE("what a time limit decided is in the configuration: without it, and resumed, the run has the same bytes") {
  CapturedRun run(timed_run(), letters_text());
  const Config recorded = train_for(20, run);
  REQUIRE(recorded.max_steps == 80);
  const std::string expected = last_checkpoint(run);
  CapturedRun again(recorded, letters_text());
  again.go_on(0, 80);
  REQUIRE(last_checkpoint(again) == expected);
  // From a checkpoint before the decision, which was taken after 8 steps, and from one after it.
  for (const std::int64_t step : {0, 10, 40}) {
    CapturedRun resumed(recorded, letters_text());
    std::filesystem::copy(run.directory.path(), resumed.directory.path(),
                          std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
    for (const std::int64_t later : resumed.directory.checkpoints()) {
      if (later > step) std::filesystem::remove(resumed.directory.checkpoint_file(later));
    }
    resumed.go_on(step, 80);
    REQUIRE(last_checkpoint(resumed) == expected);
  }
}
