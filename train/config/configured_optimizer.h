// The optimizer and the learning rates that a configuration describes.
#pragma once

#include <memory>
#include <vector>

#include "autograd/parameter.h"
#include "optim/lr_schedule.h"
#include "optim/optimizer.h"
#include "train/config/config.h"

namespace maki {

/// The store need not be sealed yet, and must outlive the optimizer.
std::unique_ptr<Optimizer> make_optimizer(const Config& config, ParameterStore& store);
/// For learning_rate_at(): the schedule of the run, then its further phases.
std::vector<LrPhase> lr_phases(const Config& config);

}  // namespace maki
