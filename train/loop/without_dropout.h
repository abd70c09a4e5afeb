// A copy of a loaded model that has no dropout, which a Recording would apply: for verbs that record the passes of a
// trained model.
#pragma once

#include <memory>

#include "train/run/loaded_model.h"

namespace maki {

/// Has weights of its own, a copy, and shares the n-gram prior.
struct ModelWithoutDropout {
  explicit ModelWithoutDropout(const LoadedModel& loaded);

  ParameterStore store;
  std::unique_ptr<Model> model;
};

}  // namespace maki
