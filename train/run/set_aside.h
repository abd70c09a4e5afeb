// Returning to an earlier checkpoint of a run: later checkpoints are moved aside, not deleted.
#pragma once

#include <cstdint>
#include <string>

#include "train/run/run_directory.h"

namespace maki {

/// Makes a new folder RUN/abandoned-<n>, with the lowest n >= 1 that is not taken; copies metrics.jsonl to it; points
/// `last` to `step`; and then moves every checkpoint later than `step` into it. Returns the folder; or, if there is no
/// later checkpoint, changes nothing and returns "". The session that resumes the run does the rest: it truncates
/// metrics.jsonl to `step` (MetricsFile) and chooses `best` anew, which may point to a moved checkpoint until then.
///
/// The latest checkpoint is moved first. If the process is killed halfway, the run can therefore be resumed from the
/// newest checkpoint that has not been moved. Throws CheckpointError if the folder, the copy or the pointer cannot be
/// written or a checkpoint cannot be moved; what was done before remains. `fs` makes the copy and the moves; the
/// pointer is written through run.file_system().
///
/// Requires: the checkpoint of `step` exists and is intact, and the caller holds the run's RunLock.
std::string move_later_checkpoints(const RunDirectory& run, std::int64_t step, FileSystem& fs = posix_file_system());

}  // namespace maki
