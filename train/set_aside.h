// Returning to an earlier checkpoint of a run: what came after it is kept, out of the way.
#pragma once

#include <cstdint>
#include <string>

#include "train/run_directory.h"

namespace maki {

/// Moves every checkpoint later than `step` into a new folder RUN/abandoned-<n>, together with a copy of metrics.jsonl,
/// and points `last` to `step`. Returns the folder; "" where there is no later checkpoint. A process that is killed on
/// the way leaves a run that can be resumed. Throws CheckpointError when something cannot be moved.
std::string set_aside_after(const RunDirectory& run, std::int64_t step, FileSystem& fs = posix());

}  // namespace maki
