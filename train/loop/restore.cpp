#include "train/loop/restore.h"

#include "train/run/checkpoint.h"

namespace maki {

void restore(const ContainerReader& file, Trainer& trainer) {
  const std::int64_t step = read_state(file).step;
  load_values(file, trainer.store());
  load_optimizer(file, step, trainer.optimizer());
  trainer.set_steps(step);
}

}  // namespace maki
