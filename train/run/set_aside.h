// Returning to an earlier checkpoint of a run: later checkpoints are moved aside, not deleted.
#pragma once

#include <cstdint>
#include <string>

#include "train/run/run_directory.h"

namespace maki {

/// Moves every checkpoint later than `step` into a new folder RUN/abandoned-<n>, together with a copy of metrics.jsonl,
/// and points `last` to `step`. `best` is left as it is; the next session chooses it anew. Returns the folder, or "" if
/// there is no later checkpoint. If the process is killed halfway, the run can be resumed from the newest checkpoint
/// that has not been moved. Throws CheckpointError if something cannot be moved.
std::string move_later_checkpoints(const RunDirectory& run, std::int64_t step, FileSystem& fs = posix_file_system());

}  // namespace maki
