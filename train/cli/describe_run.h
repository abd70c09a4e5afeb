// What `maki train` says about a run before it begins, on stderr.
#pragma once

#include <cstdint>
#include <string>

#include "data/dataset/dataset.h"
#include "train/config/config.h"

namespace maki {

/// Text, model, run, memory, and warnings about what will not fit or not happen. Takes no memory for the model.
void describe_run(const Config& config, const Dataset& data, const std::string& run, bool resumed);

/// The length of a run is given in optimizer steps. Throws Error, with the number of steps that the passes would be, if
/// `epochs` is not empty.
void check_epochs(const std::string& epochs, const Config& config, std::int64_t train_tokens);

/// Says how to continue a run that has reached its last step.
void describe_finished_run(const Config& config, const std::string& path, std::int64_t step);

}  // namespace maki
