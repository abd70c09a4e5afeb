// The length of a run in passes over its training text: maki train --epochs.
#pragma once

#include <string>

#include "train/app/train_options.h"
#include "train/loop/task.h"

namespace maki {

/// Throws Error if something else sets the length of the run as well: --max-steps or --minutes.
void check_epochs(const TrainOptions& options);
/// The fewest optimizer steps that read the training data as often as `epochs` says. Throws Error unless it is a number
/// above 0.
std::int64_t steps_of_epochs(const std::string& epochs, const Task& task);

}  // namespace maki
