#include "train/loop/restore.h"

#include "train/run/checkpoint.h"
#include "train/run/memory_section.h"

namespace maki {

void restore(const ContainerReader& file, Trainer& trainer) {
  const CheckpointState state = read_state(file);
  load_values(file, trainer.store());
  load_optimizer(file, state.step, trainer.optimizer());
  load_memory(file, trainer.carried(), tokens_per_row(state));
  trainer.set_steps(state.step);
}

}  // namespace maki
