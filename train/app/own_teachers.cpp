#include "train/app/own_teachers.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <vector>

#include "autograd/core/parallel.h"
#include "data/io/error.h"
#include "data/io/number.h"
#include "data/mixing/held_out_expectations.h"
#include "train/app/begun_run.h"
#include "train/app/interrupt.h"
#include "train/app/progress.h"
#include "train/app/ranks.h"
#include "train/app/reading.h"
#include "train/app/run_session.h"
#include "train/app/shared_run.h"
#include "train/loop/language_model_task.h"
#include "train/loop/taught_task.h"
#include "train/run/config/models.h"
#include "train/run/metrics.h"
#include "train/run/new_run.h"
#include "train/run/run_lock.h"
#include "train/run/set_aside.h"
#include "train/run/verified_checkpoint.h"

namespace maki {
namespace {

std::string path_of_own(const RunDirectory& run, std::size_t number) {
  return fmt::format("{}/teacher-{}", run.path(), number);
}

// The configurations of the own teachers.
std::vector<Config> own_teachers(const Config& config, const RunDirectory& run) {
  std::vector<Config> all;
  for (const std::string& name : config.teacher) {
    const auto steps = own_teacher_steps(name);
    if (!steps) continue;
    Config& teacher = all.emplace_back(config);
    teacher.teacher.clear();
    teacher.taught_by.clear();
    teacher.out = path_of_own(run, all.size());
    teacher.seed = (config.seed + std::ssize(all)) % static_cast<std::int64_t>(kMaxSeed);
    teacher.max_steps = teacher.lr_decay_steps = *steps;
    teacher.warmup_steps = std::min(config.warmup_steps, *steps);
    teacher.phases.clear();
    teacher.counting = false;
    teacher.sample_interval = 0;
  }
  return all;
}

// The newest checkpoint of a teacher whose training has begun. One of other settings is moved aside.
std::optional<VerifiedCheckpoint> begun(const Config& teacher, const RunDirectory& run, const RunDirectory& taught,
                                        std::optional<RunLock>& lock) {
  if (!run.exists()) return std::nullopt;
  lock.emplace(run);
  clear_up(run);
  std::vector<std::string> notes;
  std::optional<VerifiedCheckpoint> from(newest_intact(run, notes));
  for (const std::string& note : notes) warn(note);
  const auto differences = training_differences(from->state().config, teacher);
  if (differences.empty()) return from;
  lock.reset();
  const FieldDifference& first = differences.front();
  say(fmt::format("{} has {} {}, and a teacher of this run must have {}: moved to {}", run.path(), first.name,
                  first.first, first.second, set_aside(taught, run.path())));
  return std::nullopt;
}

// Returns the exit code if that was interrupted.
std::optional<int> train_teacher(const Config& teacher, const Task& text, const RunDirectory& taught) {
  const RunDirectory run(teacher.out);
  std::optional<RunLock> lock;
  std::optional<RunClaim> claim;
  const std::optional<VerifiedCheckpoint> from = begun(teacher, run, taught, lock);
  const std::int64_t step = from ? from->state().step : 0;
  if (from && is_finished(teacher, run, step)) return std::nullopt;
  if (!from) claim.emplace(run, "");
  say(fmt::format("first a teacher, in {}: {}{}", run.path(), pluralize(teacher.max_steps, "step"),
                  step > 0 ? fmt::format(", after step {}", step) : ""));
  write_config(run, teacher);
  const std::unique_ptr<Task> task = share_teacher_training(teacher, text);
  Trainer trainer(teacher, *task, trainable_model(teacher, *task), /*initial_values=*/!from, ranks());
  if (from) trainer.restore(*from);
  // The best checkpoint teaches, and an evaluation that only an interrupted run has could make it another one.
  const SessionEnd end =
      show_session(teacher, trainer, run, {.may_evaluate = [] { return false; }, .resumed = from ? &*from : nullptr});
  return end == SessionEnd::interrupted ? std::optional(say_how_to_continue(taught)) : std::nullopt;
}

void say_what_is_counted(const Task& task) {
  constexpr double kWorthNaming = 5;  // seconds
  const LanguageModelTask* const text = task.as_language_model();
  const double seconds = text == nullptr ? 0
                                         : HeldOutExpectations::seconds_to_make(std::ssize(text->dataset().train),
                                                                                task.vocab_sizes().target, threads());
  say(fmt::format("counting the text in many contexts, to learn from it{}",
                  seconds < kWorthNaming ? "" : fmt::format(": about {}", format_duration(seconds))));
}

}  // namespace

void require_own_teachers(const Config& config, bool has_weights) {
  check(!has_weights,
        "teacher: @own trains a network from random weights, and --init-from gives others; use one of them");
  check(!carries_state(config),
        "teacher: a model of kind {} remembers what it has read before its window, which a teacher must not; name "
        "another run, or use another `model`",
        config.model);
}

void save_beginning(const Config& config, Trainer& trainer, const RunDirectory& run,
                    const std::vector<std::pair<Remark::Kind, std::string>>& remarks) {
  CheckpointState state = trainer.task().data_state();
  state.config = config;
  state.config.phases = phases_before(config, 0);
  write_checkpoint(run.file_system(), run.checkpoint_file(0), state, trainer.store(), trainer.optimizer(),
                   trainer.carried());
  run.set_last(0);
  MetricsFile metrics(run.metrics_file(), /*step=*/0, run.file_system());
  for (const auto& [kind, text] : remarks) metrics.on_remark({kind, 0, text});
  metrics.on_sync();
}

std::optional<int> train_own_teachers(const Config& config, const Task& task, const RunDirectory& run) {
  if (!config.taught_by.empty()) return std::nullopt;
  const DeferInterrupts deferred;
  for (const Config& teacher : own_teachers(config, run)) {
    if (const auto exit_code = train_teacher(teacher, task, run)) return exit_code;
  }
  return std::nullopt;
}

std::unique_ptr<Task> with_teachers(Config& config, std::unique_ptr<Task> task, const RunDirectory& run) {
  require_same_teaching(config);
  if (config.teacher.empty()) return task;
  config.teacher = teacher_checkpoints(config.teacher);
  Config with_paths = config;
  std::size_t number = 0;
  for (std::string& teacher : with_paths.teacher) {
    if (own_teacher_steps(teacher)) teacher = path_of_own(run, ++number);
  }
  with_paths.teacher = teacher_checkpoints(with_paths.teacher);
  if (std::ranges::find(config.teacher, kCountingTeacher) != config.teacher.end()) say_what_is_counted(*task);
  if (config.taught_by.empty()) config.taught_by = with_paths.taught_by = taught_by(with_paths);
  return share_teachers(with_paths, std::move(task));
}

}  // namespace maki
