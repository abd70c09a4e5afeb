// The start of a run: claims its directory without touching anything that maki did not create, and rolls back if the
// start fails.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/run/run_lock.h"

namespace maki {

/// Throws OccupiedOutput if the directory of a new run contains another run, or anything that maki did not create. A
/// directory that is missing or empty is unoccupied. So is one that contains only what a start leaves behind when it is
/// killed before its first checkpoint: the lock file, a config.toml with exactly the bytes that this run would write
/// (`config_toml`; empty: not compared), an empty metrics.jsonl, and temporary files of config.toml, the pointers and
/// checkpoints. Throws CheckpointError if the directory cannot be read.
void require_unoccupied(const RunDirectory& run, std::string_view config_toml = {});

/// Claims a run directory: creates it, locks it as long as this object exists, and requires that it is unoccupied (see
/// require_unoccupied()). Whoever has the lock has the directory: of several claims at the same time one succeeds, and
/// the others change nothing in it. If the constructor throws, nothing that it created remains, except for a directory
/// that another claim uses.
class RunClaim {
 public:
  /// Throws what require_unoccupied(), RunDirectory::create() and RunLock throw: OccupiedOutput if the directory
  /// belongs to another run or claim.
  RunClaim(const RunDirectory& run, std::string_view config_toml);

  /// Removes RunDirectory::initial_files(), the lock file and the directories, as far as they did not exist before, and
  /// nothing else. What cannot be removed remains without a message. Called at most once; the lock is still held.
  void roll_back();

 private:
  void lock();

  RunDirectory run_;
  std::vector<std::string> outside_, inside_;  ///< directories created here, the outermost first: up to run_, and in it
  std::optional<RunLock> lock_;
  std::vector<std::string> files_;  ///< those of the run that did not exist before
};

}  // namespace maki
