// The mean loss of a model over evaluation batches: the one computation behind training's evaluations and `maki eval`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "data/batch.h"
#include "nn/gpt.h"

namespace maki {

struct MeanLoss {
  double mean;  ///< nats per target
  std::int64_t targets;
};

/// How many of `count` batches are evaluated when at most `most` are wanted (0: all).
std::int64_t batches_taken(std::int64_t most, std::int64_t count);
/// The index of sample i of `taken` batches spread evenly over `count`: each is the middle of its part. Ascending, and
/// the identity when taken == count. Every evaluation of a text therefore measures the same batches.
std::int64_t spread_index(std::int64_t i, std::int64_t taken, std::int64_t count);

/// Over at most `most` batches (0: all), spread evenly over the text, without a recording. `stop` is asked before each
/// batch; returns none when it says yes.
std::optional<MeanLoss> mean_loss(const Gpt& model, const EvalBatches& batches, std::int64_t block_size,
                                  std::int64_t most, const std::function<bool()>& stop);

/// The mean over the whole text, and over the batches that mean_loss() would take: computed in one pass, with the same
/// bits.
struct WholeLoss {
  MeanLoss whole, sample;
};
std::optional<WholeLoss> whole_loss(const Gpt& model, const EvalBatches& batches, std::int64_t block_size,
                                    std::int64_t most, const std::function<bool()>& stop);

}  // namespace maki
