#include "train/run/run_lock.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "train/config/error.h"

namespace maki {
namespace {

// Whether the path still names the open file: a start that fails removes the lock file that it created, and a lock on a
// removed file protects nothing.
bool is_current(FileSystem& fs, int descriptor, const std::string& path) {
  struct stat ours = {}, named = {};
  return fs.fstat(descriptor, ours) == 0 && stat(path.c_str(), &named) == 0 && ours.st_dev == named.st_dev &&
         ours.st_ino == named.st_ino;
}

}  // namespace

RunLock::RunLock(const RunDirectory& run) : fs_(run.file_system()) {
  const std::string path = file(run);
  try {
    for (;;) {
      open(path);
      lock(run, path);
      if (is_current(fs_, descriptor_, path)) break;
      fs_.close(descriptor_);
    }
  } catch (...) {
    if (descriptor_ >= 0) fs_.close(descriptor_);
    throw;
  }
  const std::string pid = std::to_string(getpid());
  if (ftruncate(descriptor_, 0) != 0 || pwrite(descriptor_, pid.data(), pid.size(), 0) < 0) {
    // Not an error: the number is only used in the message to another process.
  }
}

void RunLock::open(const std::string& path) {
  descriptor_ = fs_.open(path, O_RDWR | O_CREAT | O_EXCL, 0644);
  created_ = descriptor_ >= 0;
  if (!created_ && errno == EEXIST) descriptor_ = fs_.open(path, O_RDWR | O_CREAT, 0644);
  check<CheckpointError>(descriptor_ >= 0, "{}: cannot be opened: {}", path, std::strerror(errno));
}

void RunLock::lock(const RunDirectory& run, const std::string& path) {
  if (fs_.flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  if (created_ && error != EWOULDBLOCK) fs_.unlink(path);
  check<CheckpointError>(error == EWOULDBLOCK,
                         "{}: cannot be locked: {} (file system: {}); put the run on a file system that supports flock",
                         path, std::strerror(error), file_system_type(descriptor_));
  char holder[32] = {};
  const ssize_t n = fs_.pread(descriptor_, holder, sizeof holder - 1, 0);
  fail("{}: is locked by {}{}; wait until it ends, or stop it", run.path(), n > 0 ? "process " : "another process",
       n > 0 ? holder : "");
}

RunLock::~RunLock() { fs_.close(descriptor_); }

}  // namespace maki
