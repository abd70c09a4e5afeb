#include "train/run/early_stop.h"

namespace maki {

std::optional<std::int64_t> find_overfitting(std::span<const EvalPoint> evaluations, const EvalFilter& regular,
                                             std::int64_t patience) {
  const EvalPoint *best = nullptr, *newest = nullptr;
  std::int64_t since = 0;
  for (const EvalPoint& evaluation : evaluations) {
    if (evaluation.step <= regular.after || evaluation.step % regular.interval != 0) continue;
    if (evaluation.share != regular.share) continue;
    newest = &evaluation;
    ++since;
    if (best != nullptr && evaluation.loss >= best->loss) continue;
    best = &evaluation;
    since = 0;
  }
  if (best == nullptr || since < patience || newest->train_loss >= best->train_loss) return std::nullopt;
  return best->step;
}

}  // namespace maki
