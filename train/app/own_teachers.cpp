#include "train/app/own_teachers.h"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include "data/io/error.h"
#include "data/io/number.h"
#include "train/app/begun_run.h"
#include "train/app/interrupt.h"
#include "train/app/progress.h"
#include "train/app/ranks.h"
#include "train/app/reading.h"
#include "train/app/run_session.h"
#include "train/app/shared_run.h"
#include "train/loop/plan/plan.h"
#include "train/loop/taught_task.h"
#include "train/run/config/models.h"
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

// Looks, after the first part of a teacher, whether its steps take much longer than planned, so that too little time
// would be left for the run.
class TeacherPace final : public SessionListener {
 public:
  TeacherPace(const TimeLimit& limit, std::int64_t steps, std::int64_t teachers)
      : limit_(limit), runs_(taught_run_time(teachers)), steps_(steps), begin_(limit.elapsed()) {}

  void on_step(const StepReport&, double) override { ++done_; }
  bool is_too_slow() {
    constexpr double kFirstPart = 0.1, kTooSlow = 1.2;
    constexpr std::int64_t kMinSteps = 3;
    const double spent = limit_.elapsed() - begin_, planned = (limit_.seconds - begin_) / runs_;
    if (decided_ || done_ < kMinSteps || spent < kFirstPart * planned) return slow_;
    decided_ = true;
    slow_ = spent / static_cast<double>(done_) * static_cast<double>(steps_) > kTooSlow * planned;
    return slow_;
  }
  /// The steps of each teacher, and of the run, that fit into the time that is left.
  std::int64_t steps_that_fit() const {
    const double now = limit_.elapsed(), per_step = (now - begin_) / static_cast<double>(done_);
    return static_cast<std::int64_t>(std::max(1.0, (limit_.seconds - now) / (runs_ * per_step)));
  }

 private:
  const TimeLimit& limit_;
  double runs_;
  std::int64_t steps_, done_ = 0;
  double begin_;
  bool decided_ = false, slow_ = false;
};

enum class TeacherEnd : std::uint8_t { complete, interrupted, too_slow };

// The newest checkpoint of a teacher whose training has begun. One of other settings is moved aside.
std::optional<VerifiedCheckpoint> begun(const Config& teacher, const RunDirectory& run, const RunDirectory& taught,
                                        std::optional<RunLock>& lock) {
  if (!run.exists()) return std::nullopt;
  lock.emplace(run);
  clear_up(run);
  std::vector<std::string> notes;
  std::optional<VerifiedCheckpoint> from(newest_intact(run, notes));
  for (const std::string& note : notes) say(note);
  const auto differences = training_differences(from->state().config, teacher);
  if (differences.empty()) return from;
  lock.reset();
  const FieldDifference& first = differences.front();
  say(fmt::format("{} has {} {}, and a teacher of this run must have {}: moved to {}", run.path(), first.name,
                  first.first, first.second, set_aside(taught, run.path())));
  return std::nullopt;
}

TeacherEnd train_teacher(const Config& teacher, const Task& text, const RunDirectory& taught, TeacherPace* pace) {
  const RunDirectory run(teacher.out);
  std::optional<RunLock> lock;
  std::optional<RunClaim> claim;
  const std::optional<VerifiedCheckpoint> from = begun(teacher, run, taught, lock);
  const std::int64_t step = from ? from->state().step : 0;
  if (from && is_finished(teacher, run, step)) return TeacherEnd::complete;
  if (!from) claim.emplace(run, "");
  say(fmt::format("first a teacher, in {}: {}{}", run.path(), pluralize(teacher.max_steps, "step"),
                  step > 0 ? fmt::format(", after step {}", step) : ""));
  write_config(run, teacher);
  const std::unique_ptr<Task> task = share_teacher_training(teacher, text);
  Trainer trainer(teacher, *task, trainable_model(teacher, *task), /*initial_values=*/!from, ranks());
  if (from) trainer.restore(*from);
  SessionOptions options{.stop = interrupt_request(), .resumed = from ? &*from : nullptr};
  if (pace != nullptr) {
    options.stop = [pace] { return interrupted() != 0 || pace->is_too_slow(); };
    options.listeners = {pace};
  }
  if (show_session(teacher, trainer, run, std::move(options)) != SessionEnd::interrupted) return TeacherEnd::complete;
  return pace != nullptr && pace->is_too_slow() && interrupted() == 0 ? TeacherEnd::too_slow : TeacherEnd::interrupted;
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

void save_beginning(const Config& config, Trainer& trainer, const RunDirectory& run) {
  CheckpointState state = trainer.task().data_state();
  state.config = config;
  state.config.phases = phases_before(config, 0);
  write_checkpoint(run.file_system(), run.checkpoint_file(0), state, trainer.store(), trainer.optimizer(),
                   trainer.carried());
  run.set_last(0);
}

std::optional<int> train_own_teachers(Config& config, const Task& task, const RunDirectory& run,
                                      const TimeLimit* limit) {
  if (!config.taught_by.empty()) return std::nullopt;
  const DeferInterrupts deferred;
  std::vector<Config> teachers = own_teachers(config, run);
  for (std::size_t i = 0; i < teachers.size();) {
    std::optional<TeacherPace> pace;
    if (limit != nullptr && i == 0) pace.emplace(*limit, teachers[i].max_steps, std::ssize(teachers));
    switch (train_teacher(teachers[i], task, run, pace ? &*pace : nullptr)) {
      case TeacherEnd::complete:
        ++i;
        break;
      case TeacherEnd::interrupted:
        return say_how_to_continue(run);
      case TeacherEnd::too_slow:
        limit = nullptr;
        for (std::string& name : config.teacher) {
          if (own_teacher_steps(name)) name = fmt::format("@own:{}", pace->steps_that_fit());
        }
        say(fmt::format("its steps take longer than planned: {} fit", pluralize(pace->steps_that_fit(), "step")));
        write_config(run, config);
        teachers = own_teachers(config, run);
    }
  }
  return std::nullopt;
}

std::unique_ptr<Task> with_teachers(Config& config, std::unique_ptr<Task> task, const RunDirectory& run) {
  check(!config.teacher.empty() || config.taught_by.empty(),
        "teacher: this run learns from others, with the values {}; name their runs", config.taught_by);
  if (config.teacher.empty()) return task;
  config.teacher = teacher_checkpoints(config.teacher);
  Config with_paths = config;
  std::size_t number = 0;
  for (std::string& teacher : with_paths.teacher) {
    if (own_teacher_steps(teacher)) teacher = path_of_own(run, ++number);
  }
  with_paths.teacher = teacher_checkpoints(with_paths.teacher);
  if (config.taught_by.empty()) config.taught_by = with_paths.taught_by = taught_by(with_paths);
  return share_teachers(with_paths, std::move(task));
}

}  // namespace maki
