// A run that has begun, before it is continued.
#pragma once

#include <cstdint>

#include "train/run/config/config.h"
#include "train/run/run_directory.h"

namespace maki {

/// Removes or completes what a process that was killed has left behind, and says so. Requires: the run is locked.
void clear_up(const RunDirectory& run);

/// Replaces config.toml.
void write_config(const RunDirectory& run, const Config& config);

/// Whether the run has nothing left to do after `step`. One that was ended between its last save and its last
/// evaluation still has to do that evaluation, and one that was interrupted or killed then its last sample and its end.
bool is_finished(const Config& config, const RunDirectory& run, std::int64_t step);

}  // namespace maki
