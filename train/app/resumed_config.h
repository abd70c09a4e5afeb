// The configuration of a run that is resumed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/app/flags.h"
#include "train/run/checkpoint.h"
#include "train/run/run_directory.h"

namespace maki {

struct ResumeOptions {
  const ConfigFlags& flags;
  std::string run;
  bool rewarm;  ///< start a new phase of the learning-rate schedule at the step of the checkpoint
  std::optional<std::int64_t> max_steps = {};  ///< what --epochs says, in the place of --max-steps
};

/// Training fields come from the checkpoint; run fields come from config.toml, and then from the command line. Phases
/// of the schedule that the checkpoint has not reached are recorded in config.toml only, and a new phase replaces them.
/// Throws Error if config.toml has another training field, if an option would change one (with `rewarm`, learning_rate,
/// min_lr, warmup_steps and lr_decay_steps describe the new phase instead), or if the new phase would not end after the
/// step of the checkpoint. `ran_on` receives the SIMD target that config.toml records; empty if there is none.
Config resumed_config(const ResumeOptions& options, const RunDirectory& run, const CheckpointState& state,
                      std::string& ran_on);

}  // namespace maki
