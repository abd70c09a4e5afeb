// The lock of a run directory, which only one process can hold.
#pragma once

#include <optional>

#include "data/io/descriptor.h"
#include "train/run/run_directory.h"

namespace maki {

/// Holds the lock of a run directory as long as the object exists. The system releases it when the process dies. The
/// lock file, which contains the number of the process, remains.
class RunLock {
 public:
  /// Throws OccupiedOutput, naming the process if its number is known, if another process or another object of this one
  /// holds the lock; CheckpointError if the lock file cannot be opened, if it is not one that maki wrote (a link, a
  /// file with a second name, or other contents than a power failure may leave: whoever made the directory may mean
  /// another file to be overwritten), or, naming the file system, if it cannot be locked at all.
  explicit RunLock(const RunDirectory& run);

  static std::string file(const RunDirectory& run) { return run.path() + "/.lock"; }
  /// Whether a process holds the lock, as far as the system's list of locks says so. Takes no lock itself, not even for
  /// a moment, in which a run could not start.
  static bool is_held(const RunDirectory& run);
  /// Whether this object created the lock file.
  bool created() const { return created_; }

 private:
  void open(const std::string& path);
  void lock(const RunDirectory& run, const std::string& path);
  void write_process(const RunDirectory& run, const std::string& path);
  std::string content() const;

  FileSystem& fs_;
  std::optional<Descriptor> file_;
  bool created_ = false;
};

}  // namespace maki
