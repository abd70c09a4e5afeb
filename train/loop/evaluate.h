// The mean loss of a model over evaluation batches, as both training and `maki eval` compute it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "train/loop/task.h"
#include "train/loop/team/team.h"

namespace maki {

/// How many of `count` batches an evaluation covers if it is limited to `most` batches (0: no limit).
std::int64_t sampled_batch_count(std::int64_t most, std::int64_t count);
/// The index of the i-th of `taken` batches spread evenly over `count` batches: the middle one of the i-th of `taken`
/// equal parts. Indices ascend, and are the identity if taken == count, so every evaluation of a text covers the same
/// batches. Requires 0 <= i < taken <= count; throws Error otherwise.
std::int64_t spread_index(std::int64_t i, std::int64_t taken, std::int64_t count);

/// The mean loss over at most `most` batches of a part (0: all), spread evenly over it, without recording on a tape;
/// over all batches if those have no target, as the last token of a file has none. If the model carries a state from
/// one batch to the next, the first batches are taken instead, from an empty state on: each of their rows reads another
/// stretch of the part. `stop` is asked before each batch; if it is requested, the result is nullopt.
///
/// The ranks of a team share the batches, unless each continues the one before it. All must call this with the same
/// arguments; the result is that of one rank alone, and nullopt if any rank was asked to stop.
std::optional<MeanLoss> mean_loss(const Model& model, const Task& task, Part part, std::int64_t most,
                                  const StopRequest& stop, Team& team = no_team());

/// Calls use() with the batches that mean_loss() covers, in its order, and with what the model carries from one to the
/// next, or null; `use` must compute the loss of each once. Returns false if `stop` was requested.
bool visit_batches(const Model& model, const Task& task, Part part, std::int64_t most, const StopRequest& stop,
                   const std::function<void(const Batch& batch, State* carried)>& use);

/// Mean losses over the whole text, and over the batches that mean_loss() would cover.
struct FullAndSampledLoss {
  MeanLoss whole, sample;
};
/// Computes both in one pass, with the same bits as two calls of mean_loss(), whose other arguments these are.
std::optional<FullAndSampledLoss> full_and_sampled_loss(const Model& model, const Task& task, Part part,
                                                        std::int64_t most, const StopRequest& stop,
                                                        Team& team = no_team());

/// The share of the validation data that the model answers rightly, over at most `most` batches (0: all); nullopt for
/// tasks without answers, and if `stop` is requested, of any rank. Shared as mean_loss() is.
std::optional<double> accuracy(const Model& model, const Task& task, std::int64_t most, const StopRequest& stop,
                               Team& team = no_team());

}  // namespace maki
