// Early stopping: a run that is overfitting has seen its best checkpoint already.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace maki {

/// One evaluation, as a line of metrics.jsonl has it. `share` is the part of the validation text that `loss` covers (0:
/// not recorded).
struct Measured {
  std::int64_t step;
  double loss, share, train_loss;
};

/// Which evaluations count: those at multiples of `interval` after step `after`, over the same share. Evaluations at
/// other steps come from interruptions; without them a run that was stopped and resumed ends at the same step.
struct Regular {
  std::int64_t interval, after;
  double share;
};

/// The step of the best evaluation, if the run is overfitting: none of the last `patience` evaluations is better than
/// it, and the training loss of the newest is below that of the best. (A validation loss that stands still while the
/// training loss does, too, is a plateau.) None otherwise.
std::optional<std::int64_t> overfitting_since(std::span<const Measured> evaluations, const Regular& regular,
                                              std::int64_t patience);

}  // namespace maki
