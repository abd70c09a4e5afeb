// The lock of a run directory: one process at a time.
#pragma once

#include "train/run_directory.h"

namespace maki {

/// Keeps other processes out of a run directory while it lives; the system drops it when the process dies.
class RunLock {
 public:
  /// Throws Error, naming the process that holds the lock; CheckpointError, naming the file system, where the directory
  /// cannot be locked at all.
  explicit RunLock(const RunDirectory& run);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  static std::string file(const RunDirectory& run) { return run.path() + "/.lock"; }
  /// Was the lock file made by this process?
  bool created() const { return created_; }

 private:
  void open(const std::string& path);
  void lock(const RunDirectory& run, const std::string& path);

  FileSystem& fs_;
  int descriptor_ = -1;
  bool created_ = false;
};

}  // namespace maki
