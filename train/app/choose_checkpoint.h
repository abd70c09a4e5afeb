// The checkpoint that a verb reads.
#pragma once

#include <string>

namespace maki {

/// The path of a checkpoint, by find_checkpoint() of train/run/run_directory.h, whose notes about missing or damaged
/// checkpoints are printed to stderr. A .maki file is returned as it is. In a run directory it is `choice` ("best",
/// "last" or a step); if that is empty, the best, else the last, else the newest. Throws Error if there is none,
/// CheckpointError if it cannot be read.
std::string choose_checkpoint(const std::string& run_or_file, const std::string& choice);

}  // namespace maki
