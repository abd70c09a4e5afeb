// How long the parts of a planned run are expected to take.
#pragma once

#include <cstdint>

#include "train/loop/time_limit.h"
#include "train/run/config/tasks.h"

namespace maki {

/// The time in seconds of each kind of work of a run, each counted once, from the measured time of a step.
WorkTimes expected_times(const Config& config, const VocabSizes& vocab, double seconds_per_step);
/// How many batches evaluations have for a text of `tokens` tokens, of which `train_tokens` are for training.
EvalExtent eval_extent(const Config& config, std::int64_t tokens, double train_tokens);
/// Seconds for the n-gram count that reads a text of `tokens` tokens before training begins, if the configuration has a
/// prior or asks for a count (Config::counting); else 0.
double counting_seconds(const Config& config, std::int64_t tokens);
/// Seconds for the n-gram count of a text of `tokens` tokens, for a prior of n-grams of any length.
double prior_seconds(std::int64_t tokens);

}  // namespace maki
