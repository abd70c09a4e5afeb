// The mean loss of a model over evaluation batches: the one computation behind training's evaluations and `maki eval`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "data/batch.h"
#include "nn/gpt.h"

namespace maki {

struct MeanLoss {
  double mean;  ///< nats a target
  std::int64_t targets;
};

/// Over the first `most` batches (0: all), without a recording. `stop` is asked before each; none when it says yes.
std::optional<MeanLoss> mean_loss(const Gpt& model, const EvalBatches& batches, std::int64_t block_size,
                                  std::int64_t most, const std::function<bool()>& stop);

}  // namespace maki
