// The configuration that a run directory stores.
#pragma once

#include "train/run/config/config.h"
#include "train/run/run_directory.h"

namespace maki {

/// Overwrites the fields that config.toml of a run sets. Throws Error for what apply_toml() rejects, and
/// CheckpointError if the file cannot be read or has more than kMaxConfigBytes bytes.
void apply_stored_config(Config& config, const RunDirectory& run);

}  // namespace maki
