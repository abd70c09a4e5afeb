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

TEST_CASE("rates of a session are those of its steps since the last ones, and its end tells the passes over the text") {
  struct Watch : SessionListener {
    void on_log(const StepReport& report, double tokens_per_second, double) override {
      REQUIRE(tokens_per_second == 8);  // two tokens in a quarter of a second
      REQUIRE(report.tokens == 2 * report.step);
      logged.push_back(report.step);
    }
    void on_finish(std::int64_t step, double, double passes) override {
      REQUIRE(step == 50);
      read = passes;
    }
    std::vector<std::int64_t> logged;
    double read = 0;
  } watch;
  CapturedRun run(timed_run(), letters_text());
  run.config.log_interval = 20;
  TextTrainer trainer(run.config, run.data);
  const TimeLimit limit{.seconds = 12.5,
                        .elapsed = [&] { return 0.25 * static_cast<double>(trainer.steps()); },
                        .most_steps = 1000,
                        .record = [](const Config&) {}};
  REQUIRE(Session(run.config, trainer, run.directory, watch, {.limit = limit}).train() == SessionEnd::finished);
  REQUIRE(watch.logged == std::vector<std::int64_t>{20, 40, 50});
  REQUIRE(watch.read == trainer.epochs());
  REQUIRE(watch.read > 1);
}

TEST_CASE("the time that checkpoints take is left to those that follow") {
  struct Counted : Unsynced {
    int rename(const std::string& from, const std::string& to) override {
      checkpoints += to.ends_with(".maki") ? 1 : 0;
      return Unsynced::rename(from, to);
    }
    std::int64_t checkpoints = 0;
  } files;
  CapturedRun run(timed_run(), letters_text());
  run.config.eval_interval = run.config.checkpoint_interval = 15;
  const RunDirectory directory(run.directory.path(), files);
  TextTrainer trainer(run.config, run.data);
  const auto elapsed = [&] {  // a second for each checkpoint
    return 0.25 * static_cast<double>(trainer.steps()) + static_cast<double>(files.checkpoints);
  };
  std::vector<std::int64_t> decided;
  const TimeLimit limit{.seconds = 20, .elapsed = elapsed, .most_steps = 1000, .record = [&](const Config& now) {
                          decided.push_back(now.max_steps);
                        }};
  SessionListener nobody;
  REQUIRE(Session(run.config, trainer, directory, nobody, {.limit = limit}).train() == SessionEnd::finished);
  REQUIRE(decided == std::vector<std::int64_t>{60});
  REQUIRE(files.checkpoints == 5);
  REQUIRE(elapsed() == 20);
}

TEST_CASE(
    "the last evaluation of a session is of a sample where the whole text would take more than 15 % of its time") {
  struct Watch : SessionListener {
    void on_eval(const EvalReport& report, bool) override { last = report; }
    void on_best(std::int64_t, double loss, double share) override { best = {loss, share}; }
    EvalReport last;
    std::pair<double, double> best;
  };
  for (const double seconds : {40., 50.}) {
    INFO(seconds);
    CapturedRun run(timed_run(), letters_text());
    run.config.eval_batches = 1;  // of seven, beside 20 of the training text
    run.config.eval_interval = run.config.checkpoint_interval = 1000;
    TextTrainer trainer(run.config, run.data);
    // A step takes a quarter of a second, and so does each batch of an evaluation.
    std::int64_t asked = 0;
    const auto elapsed = [&] { return 0.25 * static_cast<double>(asked); };
    const TimeLimit limit{.seconds = seconds, .elapsed = elapsed, .most_steps = 1000, .record = [](const Config&) {}};
    Watch watch;
    const auto stop = [&] { return ++asked < 0; };
    REQUIRE(Session(run.config, trainer, run.directory, watch, {.stop = stop, .limit = limit}).train() ==
            SessionEnd::finished);
    REQUIRE(watch.last.step == trainer.steps());
    REQUIRE(watch.last.val_share == (seconds == 50 ? 1 : 1. / 7));
    REQUIRE(watch.last.sampled_val_loss.has_value() == (seconds == 50));
    REQUIRE(watch.best == std::pair(watch.last.val_loss.value(), watch.last.val_share));
    REQUIRE(elapsed() <= seconds);
    REQUIRE(elapsed() > seconds - 1);
  }
}
