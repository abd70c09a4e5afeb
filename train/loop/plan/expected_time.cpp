#include "train/loop/plan/expected_time.h"

#include <algorithm>
#include <cmath>

#include "train/loop/estimate.h"
#include "train/loop/trainer.h"

namespace maki {
namespace {

// Of a count for comparison. The most tokens are about NgramLimits::tokens.
constexpr double kSecondsPerCountedToken = 0.3e-6, kMostCountedTokens = 16e6;

}  // namespace

// A forward pass is a third of a step. The speed of the disk and the time of a sample are assumptions: a slow disk, and
// two steps.
WorkTimes expected_times(const Config& config, const VocabSizes& vocab, double seconds_per_step) {
  constexpr double kBytesPerSecond = 2e8, kSecondsPerFile = 0.05, kStepsPerSample = 2;
  const MemoryNeed need = memory_needed(config, vocab);
  WorkTimes times;
  times.add(Work::step, seconds_per_step);
  times.add(Work::eval_batch, seconds_per_step / 3);
  times.add(Work::checkpoint, kSecondsPerFile + static_cast<double>(need.values + need.moments) / kBytesPerSecond);
  times.add(Work::sample, kStepsPerSample * seconds_per_step);
  return times;
}

EvalExtent eval_extent(const Config& config, std::int64_t tokens, double train_tokens) {
  const auto batch = static_cast<double>(config.block_size * config.batch_size);
  const auto train = static_cast<std::int64_t>(std::ceil(train_tokens / batch));
  const auto val = static_cast<std::int64_t>(std::ceil((static_cast<double>(tokens) - train_tokens) / batch));
  const EvalSample sample = eval_sample(config);
  const std::int64_t train_batches = sampled_batch_count(sample.train, train);
  return {train_batches + sampled_batch_count(sample.val, val), train_batches + val};
}

double counting_seconds(const Config& config, std::int64_t tokens) {
  if (config.ngram_prior > 0) return prior_seconds(tokens);
  return config.counting ? kSecondsPerCountedToken * std::min(static_cast<double>(tokens), kMostCountedTokens) : 0;
}

double prior_seconds(std::int64_t tokens) {
  constexpr double kSecondsPerToken = 0.7e-6;  // more is made of the counts (NgramTrie, HeldOutCounts)
  return kSecondsPerToken * std::min(static_cast<double>(tokens), kMostCountedTokens);
}

}  // namespace maki
