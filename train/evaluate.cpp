#include "train/evaluate.h"

#include <algorithm>

#include "autograd/tape.h"

namespace maki {

std::optional<MeanLoss> mean_loss(const Gpt& model, const EvalBatches& batches, std::int64_t block_size,
                                  std::int64_t most, const std::function<bool()>& stop) {
  const std::int64_t count = most > 0 ? std::min(most, batches.count()) : batches.count();
  const AsRecorded rounding;
  double sum = 0;
  std::int64_t targets = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (stop && stop()) return std::nullopt;
    Tensor ids = empty({batches.rows(i), block_size}, DType::int32), wanted = empty_like(ids);
    targets += batches.fill(i, ids.values<std::int32_t>(), wanted.values<std::int32_t>());
    sum += model.loss(ids, wanted, {.ignored = kIgnoredTarget, .sum = true}).item();
  }
  return MeanLoss{sum / static_cast<double>(targets), targets};
}

}  // namespace maki
