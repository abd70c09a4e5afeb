// What `maki train` was asked for, and its two forms.
#pragma once

#include <string>
#include <vector>

#include "train/cli/flags.h"

namespace maki {

struct TrainOptions {
  explicit TrainOptions(CLI::App& command) : flags(command) {}
  ConfigFlags flags;
  std::vector<std::string> corpus;
  std::string resume, checkpoint, init_from, epochs;
  bool rewarm = false;
};

/// maki train CORPUS…: returns the exit code.
int start_run(const TrainOptions& options);
/// maki train --resume RUN: returns the exit code.
int resume_run(const TrainOptions& options);

}  // namespace maki
