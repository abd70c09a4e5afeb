// What a run will need, known before any memory is taken for it, and what the machine has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/config.h"

namespace maki {

/// Bytes that training holds at its peak. Activations are an estimate: what the recorded ops of one micro-batch save
/// for backward, and the gradients that are alive at once. The text, its tokens and the program itself come on top.
struct MemoryNeed {
  std::int64_t parameters = 0;  ///< their number
  std::int64_t values = 0, gradients = 0, moments = 0, activations = 0;

  std::int64_t total() const { return values + gradients + moments + activations; }
};
/// Takes no memory for the model.
MemoryNeed memory_needed(const Config& config, std::int64_t vocab_size);

/// Bytes that can still be taken without swapping: MemAvailable, and what the memory limits of this process's control
/// groups (version 1 or 2) leave. None where the system does not say. `root` is there for tests.
std::optional<std::int64_t> available_memory(const std::string& root = "");

/// "1.5 GB", "320 MB": powers of ten, as disks and memory are sold.
std::string bytes_text(std::int64_t bytes);

}  // namespace maki
