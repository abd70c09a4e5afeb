// Continuing from a checkpoint.
#pragma once

#include "train/loop/trainer.h"
#include "train/run/container.h"

namespace maki {

/// Loads values, moments, what the model carries from one step to the next, and the number of finished steps: the
/// trainer continues exactly as if it had not been stopped.
/// Requires: the trainer has the configuration of the checkpoint. Throws CorruptFile if the file does not fit the
/// trainer or is damaged, and CheckpointError if it cannot be read; after either, the trainer must not be used.
void restore(const ContainerReader& file, Trainer& trainer);

}  // namespace maki
