// What `maki train` prints about a run before it begins, on stderr.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "train/loop/trainer.h"
#include "train/run/config/config.h"

namespace maki {

/// Says that the corpus is being read, unless that takes no time: of a large text, a directory or standard input, or if
/// the run is `planned`, which takes longer.
void announce_reading(const Config& config, bool planned);

/// Prints data, model, run and memory, and warnings: a warmup that does not end, a schedule that ends early. Throws
/// Error if there is too little memory, unless `force`. Returns the model that it describes, which has no memory yet.
std::unique_ptr<TrainableModel> describe_run(const Config& config, const Task& task, const std::string& run,
                                             bool resumed, bool force);

/// Prints how to continue a run that has reached its last step, even if maki is to keep quiet.
void describe_finished_run(const Config& config, const std::string& path, std::int64_t step);

}  // namespace maki
