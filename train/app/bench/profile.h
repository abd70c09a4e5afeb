// Where the time of a training step goes: one row for each op in forward, one for it in backward, and one for
// everything that is not on the tape. Observing costs little, but speeds are measured on steps that are not observed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/loop/trainer.h"

namespace maki {

/// The cost of all calls of an op in one step. `flop` counts matrix products only: in backward as many as in forward
/// for each matrix that requires a gradient, usually two; 0 for linear_attention(). `bytes` is the smallest number that
/// must be moved: in forward every input and output once; in backward the gradient of the output, the inputs, and the
/// gradient of every input that requires one. Of an embedding, only the rows that are looked up count; add() moves
/// nothing in backward.
struct ProfileRow {
  std::string op;
  std::string pass;        ///< "forward", "backward" or "update"
  std::int64_t calls = 0;  ///< of "update": one for each micro-batch, and one for the update itself
  double seconds = 0, flop = 0, bytes = 0;
};

/// Runs `steps` training steps and returns the rows, the longest time first; times are medians over the steps. The row
/// "update" covers gathering gradients, their norm, clipping and the optimizer. The time to fill a batch is counted
/// with the first op. Throws Error if `steps` < 1, and what Trainer::step() throws.
std::vector<ProfileRow> profile_steps(Trainer& trainer, std::int64_t steps);

}  // namespace maki
