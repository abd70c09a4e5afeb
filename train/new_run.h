// The start of a run: its directory is claimed without touching what is not maki's, and given back if the start fails.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/run_lock.h"

namespace maki {

/// Throws Error when a new run would be in the way of what is in its directory: another run, or anything that maki did
/// not make. A directory that is missing or empty is free; so is one that holds no more than a start leaves behind that
/// was killed before its first checkpoint: the lock file, a config.toml with exactly the bytes that this run writes
/// (`config_toml`; empty: not compared), an empty metrics.jsonl, temporary files.
void require_free(const RunDirectory& run, std::string_view config_toml = {});

/// Claims a run directory: makes it, locks it for as long as this lives, and requires that it is free.
class NewRun {
 public:
  NewRun(const RunDirectory& run, std::string_view config_toml);

  /// Removes the files and directories of the run that were not there before, and nothing else.
  void take_back();

 private:
  RunDirectory run_;
  std::vector<std::string> directories_;  ///< made here, the outermost first
  std::optional<RunLock> lock_;
  std::vector<std::string> files_;  ///< of the run, and not there before
};

}  // namespace maki
