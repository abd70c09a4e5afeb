// Teachers that a run trains itself before its first step. With "@own:2000" as teacher, the network of the run is first
// trained for 2,000 steps with the next seed, without a teacher, as a run of its own in RUN/teacher-1 (the second such
// teacher in RUN/teacher-2), whose best checkpoint then teaches.
//
// The checkpoint of step 0 is written before, so that the run can be resumed while its teachers are trained.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/loop/task.h"
#include "train/loop/trainer.h"
#include "train/run/config/config.h"
#include "train/run/listener.h"
#include "train/run/run_directory.h"

namespace maki {

/// Throws Error if the run can have no teachers of its own: one that begins with the weights of another (`has_weights`)
/// or whose model remembers what it has read before its window.
void require_own_teachers(const Config& config, bool has_weights);

/// Writes the checkpoint of step 0, and the remarks, which are SessionOptions::remarks of the run. Throws what
/// write_checkpoint() and MetricsFile throw. Requires: the run is claimed.
void save_beginning(const Config& config, Trainer& trainer, const RunDirectory& run,
                    const std::vector<std::pair<Remark::Kind, std::string>>& remarks);

/// Trains those of the own teachers that are not complete, on the task without teachers; does nothing if the run has
/// learned from them already. Returns the exit code if that was interrupted. One that has begun with other settings is
/// moved to RUN/abandoned-<n>. Throws what Session and Trainer throw.
std::optional<int> train_own_teachers(const Config& config, const Task& task, const RunDirectory& run);

/// The task with the teachers of the run, if it has any, on all ranks; says so if one of them has to count first. In
/// the configuration, other runs become their checkpoints, and taught_by is set if it is empty. Throws what taught()
/// throws. Requires: own teachers are complete.
std::unique_ptr<Task> with_teachers(Config& config, std::unique_ptr<Task> task, const RunDirectory& run);

}  // namespace maki
