// The optimizer and the learning rates that a configuration describes.
#pragma once

#include <memory>
#include <vector>

#include "autograd/parameter.h"
#include "optim/lr_schedule.h"
#include "optim/optimizer.h"
#include "train/run/config/config.h"

namespace maki {

/// The optimizer called config.optimizer (optim/make_optimizer.h), in which ngram_lr_factor is the learning rate of the
/// n-gram tables relative to the others. muon_lr becomes a multiple of learning_rate, so that it follows the schedule;
/// 0 if learning_rate is. The store need not be sealed yet, and must outlive the optimizer. Throws Error for an unknown
/// name, and for hyper-parameters that are out of range.
std::unique_ptr<Optimizer> make_optimizer(const Config& config, ParameterStore& store);
/// For learning_rate_at(): the schedule of the run, then its further phases, all with the decay config.schedule. Throws
/// Error if the decay is unknown or a schedule is not valid. Requires: lr_decay_steps is filled in
/// (fill_dependent_defaults()).
std::vector<LrPhase> lr_phases(const Config& config);

}  // namespace maki
