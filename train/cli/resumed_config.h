// The configuration that a run directory stores, and that of a run that is resumed.
#pragma once

#include <string>

#include "train/cli/flags.h"
#include "train/run/checkpoint.h"
#include "train/run/run_directory.h"

namespace maki {

struct ResumeOptions {
  const ConfigFlags& flags;
  std::string run;
  bool rewarm;  ///< start a new phase of the learning-rate schedule at the step of the checkpoint
};

/// Overwrites the fields that config.toml of a run sets. Throws Error for what apply_toml() refuses, and
/// CheckpointError if the file cannot be read or is too large (a run of an earlier version may list too many files of
/// its corpus).
void apply_stored_config(Config& config, const RunDirectory& run);

/// Training fields come from the checkpoint; run fields come from config.toml, and then from the command line. Phases
/// of the schedule that the checkpoint has not reached are recorded in config.toml only, and a new phase replaces them.
/// Throws Error if an option would change a training field. `ran_on` receives the SIMD target that config.toml records.
Config resumed_config(const ResumeOptions& options, const RunDirectory& run, const CheckpointState& state,
                      std::string& ran_on);

}  // namespace maki
