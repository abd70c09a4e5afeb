// Where the time of a training step goes: one row for each op forwards, one for its backward, and one for what is not
// on the tape. Watching costs little, but the steps watched are not those a speed is taken from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/trainer.h"

namespace maki {

/// What an op costs in one step. FLOP are those of products, by the convention of step_bench.h: backwards twice as many
/// as forwards. Bytes are the least that must move: forwards every input and output once; backwards the output's
/// gradient, the inputs, and every wanted input's gradient.
struct ProfileRow {
  std::string op;
  std::string pass;  ///< "forward", "backward", "update"
  std::int64_t calls = 0;
  double seconds = 0, flop = 0, bytes = 0;
};

/// Rows by falling time; their times are medians over `steps` steps. The row "update" is gathering gradients, their
/// norm, clipping and the optimizer. A batch is made in the time of the first op.
std::vector<ProfileRow> profile_steps(Trainer& trainer, std::int64_t steps);

}  // namespace maki
