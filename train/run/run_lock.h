// The lock of a run directory, which only one process can hold.
#pragma once

#include "train/run/run_directory.h"

namespace maki {

/// Holds the lock of a run directory as long as the object exists. The system releases it when the process dies.
class RunLock {
 public:
  /// Throws Error, naming the process, if another process holds the lock; CheckpointError, naming the file system, if
  /// the directory cannot be locked at all.
  explicit RunLock(const RunDirectory& run);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  static std::string file(const RunDirectory& run) { return run.path() + "/.lock"; }
  /// Whether this object created the lock file.
  bool created() const { return created_; }

 private:
  void open(const std::string& path);
  void lock(const RunDirectory& run, const std::string& path);

  FileSystem& fs_;
  int descriptor_ = -1;
  bool created_ = false;
};

}  // namespace maki
