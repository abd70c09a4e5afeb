// Own teachers of a run with a time limit, on a machine whose clock the test makes up.
#include <filesystem>

#include "tests/catch.h"
#include "tests/train/small_checkpoint.h"
#include "tests/train/small_data.h"
#include "train/app/own_teachers.h"
#include "train/app/progress.h"
#include "train/loop/language_model_task.h"
#include "train/loop/plan/plan.h"
#include "train/run/run_lock.h"

using namespace maki;
using namespace maki::tests;

namespace {

// A run whose first teacher is to have 400 steps, on a clock that goes on by 0.01 s whenever somebody looks at it,
// which the session does before each step and batch.
struct PacedRun {
  PacedRun() {
    keep_quiet(true);
    config = smallest_config();
    config.eval_interval = config.checkpoint_interval = 100;
    config.teacher = {"@own:400"};
    config.out = folder / "run";
    RunDirectory(config.out).create();
  }
  ~PacedRun() { keep_quiet(false); }

  // Trains the teacher of a run that may take so long. Returns its number of steps.
  std::int64_t train(double seconds) {
    const RunDirectory run(config.out);
    const RunLock lock(run);
    const Dataset data = dataset_of(seeded_text(400, "abcdef"), config);
    const LanguageModelTask task(config, data);
    double now = 0;
    const TimeLimit limit{.seconds = seconds, .elapsed = [&] { return now += 0.01; }, .most_steps = 1000, .record = {}};
    REQUIRE_FALSE(train_own_teachers(config, task, run, &limit));
    REQUIRE(config.teacher.size() == 1);
    const std::int64_t steps = own_teacher_steps(config.teacher.front()).value();
    REQUIRE(RunDirectory(config.out + "/teacher-1").last() == steps);
    return steps;
  }

  TemporaryFolder folder;
  Config config;
};

}  // namespace

TEST_CASE("teachers that take as long as planned have as many steps as planned") {
  PacedRun run;
  REQUIRE(run.train(100) == 400);
  REQUIRE_FALSE(std::filesystem::exists(run.config.out + "/abandoned-1"));
}

TEST_CASE("teachers whose steps take much longer than planned begin anew, with fewer steps, so that the run has time") {
  PacedRun run;
  const double seconds = 4;  // a step and its look at the clock take at least 0.01
  const std::int64_t steps = run.train(seconds);
  REQUIRE(steps < 400);
  REQUIRE(0.01 * static_cast<double>(steps) * taught_run_time(1) < seconds);
  REQUIRE(0.02 * static_cast<double>(steps) * taught_run_time(1) > 0.5 * seconds);
  REQUIRE(std::filesystem::exists(run.config.out + "/abandoned-1/checkpoints"));
  Config recorded;
  RunDirectory(run.config.out).apply_config(recorded);
  REQUIRE(recorded.teacher == run.config.teacher);
}
