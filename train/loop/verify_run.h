// Whether training can resume from the checkpoints of a run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/run/run_directory.h"

namespace maki {

struct Verdict {
  std::string path, fault;  ///< the checkpoint, and why training cannot resume from it (empty: it can)
};

/// The verdict of a function that throws CheckpointError if training cannot resume from the checkpoint at `path`.
Verdict verdict_on(const std::string& path, const std::function<void()>& verify);

/// Verdicts on all checkpoints of a run, in ascending order of their steps. The run may be training meanwhile: one that
/// it deletes before it is looked at has no verdict. Empty if there are none. Throws CheckpointError if the directory
/// cannot be listed.
std::vector<Verdict> verify_run(const RunDirectory& run);

}  // namespace maki
