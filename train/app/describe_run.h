// What is known about a run before it begins: what `maki train` prints about it on stderr, and whether it fits into
// memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "train/app/command.h"
#include "train/loop/estimate.h"
#include "train/loop/task.h"
#include "train/loop/trainer.h"
#include "train/run/config/config.h"

namespace maki {

/// Adds --force, which makes require_memory() warn instead.
void add_memory_option(const Command& command, bool& force);

/// "weights 6 MB, gradients 6 MB, …": the parts that are not 0.
std::string describe(const MemoryNeed& need);
/// Throws Error if more memory is needed than is available, with both and the options that lower the largest part; with
/// `force`, prints a warning with the same words to stderr. Returns if the system does not report what is available.
void require_memory(const Config& config, const MemoryNeed& need, bool force);

/// Says that the corpus is being read, unless that takes no time: of a large text, a directory or standard input, or if
/// the run is `planned`, which takes longer.
void announce_reading(const Config& config, bool planned);

/// Prints data, model, run and memory, and warnings: a warmup that does not end, a schedule that ends early. Throws
/// Error if there is too little memory, unless `force`: called before the text is counted for a teacher. Returns the
/// model that it describes, which has no memory yet.
std::unique_ptr<TrainableModel> describe_run(const Config& config, const Task& task, const std::string& run,
                                             bool resumed, bool force);

/// Prints how to continue a run that has reached its last step, even if maki is to keep quiet.
void describe_finished_run(const Config& config, const std::string& path, std::int64_t step);

}  // namespace maki
