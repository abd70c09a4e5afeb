#include "train/loop/plan/expected_time.h"

#include <algorithm>
#include <cmath>

#include "train/loop/estimate.h"
#include "train/loop/trainer.h"

namespace maki {
namespace {

// Of a count for comparison: a megabyte of characters takes 0.2 to 0.3 s.
constexpr double kSecondsPerCountedToken = 0.3e-6;
constexpr double kMaxCountedTokens = 16e6;  // about NgramLimits::tokens

}  // namespace

// A forward pass is a third of a step.
WorkTimes expected_times(const Config& config, const VocabSizes& vocab, double seconds_per_step) {
  constexpr double kDiskBytesPerSecond = 2e8, kSecondsPerFile = 0.05;  // assumed: a slow disk
  constexpr double kStepsPerSample = 2;                                // assumed: how long writing a sample takes
  const MemoryNeed need = memory_needed(config, vocab);
  WorkTimes times;
  times.add(Work::step, seconds_per_step);
  times.add(Work::eval_batch, seconds_per_step / 3);
  times.add(Work::checkpoint, kSecondsPerFile + static_cast<double>(need.values + need.moments) / kDiskBytesPerSecond);
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
  return config.counting ? kSecondsPerCountedToken * std::min(static_cast<double>(tokens), kMaxCountedTokens) : 0;
}

double prior_seconds(std::int64_t tokens) {
  constexpr double kSecondsPerPriorToken = 0.7e-6;  // more is made of the counts (NgramTrie, HeldOutCounts)
  return kSecondsPerPriorToken * std::min(static_cast<double>(tokens), kMaxCountedTokens);
}

}  // namespace maki
