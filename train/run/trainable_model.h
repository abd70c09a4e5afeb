// A model with what training keeps for it, before any of it takes memory.
#pragma once

#include <functional>
#include <memory>

#include "nn/carried_states.h"
#include "nn/scope.h"
#include "optim/optimizer.h"
#include "train/run/config/tasks.h"

namespace maki {

/// The model that a configuration describes, its parameters and its optimizer. Every number has its place, so that
/// sizes are known and a checkpoint can be compared; sealing the store allocates the memory.
struct TrainableModel {
  using MakeModel = std::function<std::unique_ptr<Model>(const Scope& scope)>;
  /// The model that `make` creates, such as that of a task. Throws Error if the configuration is not valid, and what
  /// `make` throws.
  TrainableModel(const Config& config, const MakeModel& make);
  /// The model of make_model() (train/run/config/models.h).
  TrainableModel(const Config& config, const VocabSizes& vocab);

  ParameterStore store;
  std::unique_ptr<Model> model;
  std::unique_ptr<Optimizer> optimizer;
  CarriedLayout carried;  ///< of what the model carries from one step to the next
};

}  // namespace maki
