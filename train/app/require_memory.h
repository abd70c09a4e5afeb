// Whether a model that options describe fits into memory, before any of it is allocated.
#pragma once

#include "train/app/command.h"
#include "train/loop/estimate.h"
#include "train/run/config/config.h"

namespace maki {

/// Adds --force, which makes require_memory() warn instead.
void add_memory_option(const Command& command, bool& force);

/// "weights 6 MB, gradients 6 MB, …": the parts that are not 0.
std::string describe(const MemoryNeed& need);

/// Throws Error if more memory is needed than is available, with both and the options that lower the largest part; with
/// `force`, prints a warning with the same words to stderr. Returns if the system does not report what is available.
void require_memory(const Config& config, const MemoryNeed& need, bool force);

}  // namespace maki
