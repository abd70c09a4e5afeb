// What a run no longer needs is moved aside, not deleted: later checkpoints, when it returns to an earlier one, and
// teachers that do not fit it.
#pragma once

#include <cstdint>
#include <string>

#include "train/run/run_directory.h"

namespace maki {

/// Renames a folder of the run to RUN/abandoned-<n>, with the lowest n >= 1 that is not taken, and returns that name.
/// Throws CheckpointError if it cannot be renamed. Requires: the caller holds the run's RunLock.
std::string set_aside(const RunDirectory& run, const std::string& folder);

/// Points `last` to `step`, moves every checkpoint later than `step` into a folder of the run, together with a copy of
/// metrics.jsonl, and names it RUN/abandoned-<n>, with the lowest n >= 1 that is not taken. Returns the folder; or, if
/// there is no later checkpoint, changes nothing and returns "". The session that resumes the run does the rest: it
/// truncates metrics.jsonl to `step` (MetricsFile) and chooses `best` anew, which may point to a moved checkpoint until
/// then.
///
/// The folder has another name until everything in it is durable, RUN/returning-to-<step>. If the process is killed or
/// the power fails before, complete_return() does the rest. Throws CheckpointError if something cannot be written or
/// moved; what was done before remains. If the checkpoints are on another file system than the run, nothing was done.
///
/// Requires: the checkpoint of `step` exists and is intact, and the caller holds the run's RunLock.
std::string move_later_checkpoints(const RunDirectory& run, std::int64_t step);

/// Completes what a process that has ended began with move_later_checkpoints(), so that no checkpoint of an abandoned
/// future is taken for one of the run. Returns the folder; "" if there is nothing to complete. Requires: as above.
std::string complete_return(const RunDirectory& run);

}  // namespace maki
