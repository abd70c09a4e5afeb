// The options of `maki train`, and its two forms: a new run and a resumed one.
#pragma once

#include <string>
#include <vector>

#include "train/app/flags.h"

namespace maki {

/// A text that is empty is an option that was not given.
struct TrainOptions {
  explicit TrainOptions(const Command& command) : flags(command) {}
  ConfigFlags flags;
  std::vector<std::string> corpus;
  std::string resume, checkpoint, init_from, tokenizer_file, epochs, minutes, rank_timeout;
  bool rewarm = false, any_arithmetic = false, explain = false, special = false, force = false, quiet = false;
};

/// maki train CORPUS…: returns the exit code.
int start_run(const TrainOptions& options);
/// maki train --resume RUN: returns the exit code.
int resume_run(const TrainOptions& options);

}  // namespace maki
