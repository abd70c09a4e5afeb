// How well a model predicts at each position of its context: `maki eval --by-position`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "train/loop/task.h"

namespace maki {

struct PositionLoss {
  double sum = 0;  ///< nats
  std::int64_t targets = 0;
};

/// Adds the losses of a batch's targets [B, T] to those of their positions.
void add_to_positions(const Batch& batch, const std::vector<double>& losses, std::vector<PositionLoss>& positions);

/// Calls use() with each of the batches that mean_loss() covers and the losses in nats of its targets, in their order,
/// without those that are ignored. Requires, and throws, what the function below does; returns false if `stop` was
/// requested.
bool visit_target_losses(const Model& model, const Task& task, Part part, std::int64_t most, const StopRequest& stop,
                         const std::function<void(const Batch& batch, const std::vector<double>& losses)>& use);

/// The losses of the targets that mean_loss() covers, by their position in the sequence of their batch (from 0).
/// Requires: the targets of the task are [B, T]. The result is nullopt if `stop` is requested. Throws std::logic_error
/// if the probabilities do not give the loss of the model, which would be a defect of maki.
std::optional<std::vector<PositionLoss>> loss_by_position(const Model& model, const Task& task, Part part,
                                                          std::int64_t most, const StopRequest& stop = {});

/// For people, the mean losses of position 1, 2, 3 and 4, 5 to 8, 9 to 16, …; for programs, those of all positions.
std::vector<ReportLine> measure_by_position(const std::vector<PositionLoss>& losses);

}  // namespace maki
