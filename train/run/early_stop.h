// Early stopping: detects that a run is overfitting, in which case its best checkpoint already exists.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace maki {

/// One evaluation as recorded in metrics.jsonl. `loss` is the validation loss, `share` the fraction of the validation
/// text that it covers (0: not recorded).
struct EvalPoint {
  std::int64_t step;
  double loss, share, train_loss;
};

/// Which evaluations count: those at multiples of `interval`, which is positive, after step `after` that cover the same
/// share. Evaluations at other steps come from interruptions and from ends of runs; they are ignored so that a run that
/// was stopped or extended ends at the same step as one that was not.
struct EvalFilter {
  std::int64_t interval, after;
  double share;
};

/// Returns the step of the best evaluation (the first of equal ones) if the run is overfitting, else nullopt. A run is
/// overfitting if at least `patience` evaluations have followed the best one and the training loss of the newest is
/// below that of the best; only evaluations that pass the filter count. (If the training loss does not fall either, the
/// run has reached a plateau.) Requires: the evaluations are in the order of their steps.
std::optional<std::int64_t> find_overfitting(std::span<const EvalPoint> evaluations, const EvalFilter& regular,
                                             std::int64_t patience);

}  // namespace maki
