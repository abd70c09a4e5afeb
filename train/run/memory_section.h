// The section `memory` of a checkpoint: what the model carries from one training step to the next, as one flat array.
// Its length is a function of the configuration and the step, so there is one correct one. All functions do nothing if
// the model carries nothing. `tokens` is tokens_per_row() of the state of the checkpoint.
#pragma once

#include <cstdint>

#include "nn/carried_states.h"
#include "train/run/container.h"

namespace maki {

inline constexpr const char* kMemorySection = "memory";

/// Throws CorruptFile unless the section has the length that these states have after `tokens` tokens per row.
void check_memory_length(const ContainerReader& file, const CarriedLayout& carried, std::int64_t tokens);
/// Loads the states. Throws what check_memory_length() throws, and CorruptFile unless all numbers are finite and the
/// checksum matches; the states are then unchanged.
void load_memory(const ContainerReader& file, CarriedStates& carried, std::int64_t tokens);

}  // namespace maki
