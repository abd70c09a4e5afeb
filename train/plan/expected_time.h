// How long the parts of a planned run are expected to take.
#pragma once

#include <cstdint>

#include "train/config/config.h"
#include "train/loop/time_limit.h"

namespace maki {

/// The time of each kind of work of a run, from the measured time of a step.
WorkTimes expected_times(const Config& config, std::int64_t vocabulary, double seconds_per_step);
/// How many batches evaluations have for a text of `tokens` tokens, of which `train_tokens` are for training.
EvalExtent eval_extent(const Config& config, std::int64_t tokens, double train_tokens);
/// The time of the n-gram count that reads the text before training begins, if the configuration has a prior or asks
/// for a count.
double counting_seconds(const Config& config, std::int64_t tokens);

}  // namespace maki
