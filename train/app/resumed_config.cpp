#include "train/app/resumed_config.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "autograd/core/check.h"
#include "train/loop/taught_task.h"
#include "train/loop/time_limit.h"
#include "train/run/config/field_effects.h"
#include "train/run/verified_checkpoint.h"

namespace maki {
namespace {

// What a new phase of the schedule may change.
constexpr std::string_view kPhaseFields[] = {"learning_rate", "min_lr", "warmup_steps", "lr_decay_steps"};

void apply_options(const ResumeOptions& options, Config& config) {
  options.flags.apply(config, "");
  if (options.max_steps) config.max_steps = *options.max_steps;
}

// The phase that the options describe. A value that they leave out is that of the last phase that somebody asked for,
// not of one with which a planned run has changed its length, except that the schedule ends at max_steps unless they
// set another end.
Phase new_phase(const ResumeOptions& options, Config config, std::int64_t step) {
  const Phase current = last_begun_phase(config, step + 1);
  config.learning_rate = current.learning_rate;
  config.min_lr = current.min_lr;
  config.warmup_steps = current.warmup_steps;
  config.lr_decay_steps = 0;
  apply_options(options, config);
  fill_dependent_defaults(config);
  check(config.lr_decay_steps > step,
        "rewarm: the new phase of the schedule starts at step {} and must end later; got {}; raise --max-steps", step,
        config.lr_decay_steps);
  check(!has_effect(config, "min_lr") || config.min_lr <= config.learning_rate,
        "min_lr: must not exceed learning_rate; got {} and {}; lower `min_lr` as well", config.min_lr,
        config.learning_rate);
  return {step, config.lr_decay_steps, config.learning_rate, config.min_lr, config.warmup_steps};
}

// Whether a run has teachers, and for how many steps its own were trained, is fixed once they have taught it. Where one
// is does not matter, and what it teaches is compared with what is recorded when it is read.
void require_same_teachers(const Config& before, const Config& config, std::int64_t step) {
  check(step == 0 || !config.taught_by.empty() || config.teacher.empty(),
        "teacher: this run has learned from its text alone up to step {}; got {}; omit `teacher`, or start a new run",
        step, option_text(config, find_field("teacher")));
  require_same_teaching(config);
  if (config.taught_by.empty() || before.teacher.size() != config.teacher.size()) return;
  for (std::size_t i = 0; i < config.teacher.size(); ++i) {
    const auto steps = own_teacher_steps(config.teacher[i]);
    check(!steps || steps == own_teacher_steps(before.teacher[i]),
          "teacher: is fixed for this run at {}; got {}; start a new run to change it", before.teacher[i],
          config.teacher[i]);
  }
}

}  // namespace

Config resumed_config(const ResumeOptions& options, const RunDirectory& run, const CheckpointState& state,
                      std::string& ran_on) {
  Config config = recorded_config(run, state);
  ran_on = config.target;
  std::vector<Phase> phases = state.config.phases;
  for (const Phase& phase : config.phases) {
    if (phase.start >= state.step && !options.rewarm) phases.push_back(phase);
  }
  config.phases = state.config.phases;
  const Config before = config;
  apply_options(options, config);
  config.arithmetic = before.arithmetic;  // a file of options may be the config.toml of another run
  if (options.rewarm) {
    phases.push_back(new_phase(options, before, state.step));
    for (const std::string_view name : kPhaseFields) copy_field(find_field(name), state.config, config);
  }
  config.out = options.run;
  for (const FieldDifference& difference : training_differences(state.config, config)) {
    const bool of_phase = std::ranges::find(kPhaseFields, difference.name) != std::end(kPhaseFields);
    fail("{}: is fixed for this run at {}; got {}; {}start a new run to change it", difference.name, difference.first,
         difference.second, of_phase ? "add `rewarm` to begin the schedule anew with it, or " : "");
  }
  require_same_teachers(before, config, state.step);
  config.phases = phases;
  return config;
}

}  // namespace maki
