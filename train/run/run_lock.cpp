#include "train/run/run_lock.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/io/error.h"

namespace maki {
namespace {

constexpr std::size_t kMaxProcessDigits = 20;

// Whether the path still names the open file: a start that fails removes the lock file that it created, and a lock on a
// removed file protects nothing.
bool is_current(FileSystem& fs, int descriptor, const std::string& path) {
  struct stat ours = {}, named = {};
  return fs.fstat(descriptor, ours) == 0 && lstat(path.c_str(), &named) == 0 && ours.st_dev == named.st_dev &&
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
    write_process(path);
  } catch (...) {
    if (descriptor_ >= 0) fs_.close(descriptor_);
    throw;
  }
}

void RunLock::open(const std::string& path) {
  do {
    descriptor_ = fs_.open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
    created_ = descriptor_ >= 0;
    if (created_ || errno != EEXIST) break;
    descriptor_ = fs_.open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
  } while (descriptor_ < 0 && errno == ENOENT);  // removed between the two calls
  check<CheckpointError>(descriptor_ >= 0 || errno != ELOOP,
                         "{}: must be a file that maki wrote, but is a link; remove it", path);
  check<CheckpointError>(descriptor_ >= 0, "{}: cannot be opened: {}", path, std::strerror(errno));
  struct stat status {};
  const bool known = fs_.fstat(descriptor_, status) == 0;
  check<CheckpointError>(known, "{}: cannot be accessed: {}", path, std::strerror(errno));
  check<CheckpointError>(S_ISREG(status.st_mode) && status.st_nlink <= 1,
                         "{}: must be a regular file with one name, which maki wrote; remove it", path);
}

void RunLock::lock(const RunDirectory& run, const std::string& path) {
  if (fs_.flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  if (created_ && error != EWOULDBLOCK) fs_.unlink(path);
  check<CheckpointError>(error == EWOULDBLOCK,
                         "{}: cannot be locked: {} (file system: {}); put the run on a file system that supports flock",
                         path, std::strerror(error), file_system_type(descriptor_));
  const std::string holder = content();
  fail<OccupiedOutput>("{}: is locked by {}{}; wait until it ends, or stop it", run.path(),
                       holder.empty() ? "another process" : "process ", holder);
}

// Nothing is overwritten but the number of a process.
void RunLock::write_process(const std::string& path) {
  const std::string before = content(), now = std::to_string(getpid());
  check<CheckpointError>(
      before.size() <= kMaxProcessDigits && before.find_first_not_of("0123456789") == std::string::npos,
      "{}: must contain nothing but the number of a process, as maki writes it; move the file away", path);
  if (fs_.pwrite(descriptor_, now.data(), now.size(), 0) < 0 ||
      ftruncate(descriptor_, static_cast<off_t>(now.size())) != 0) {
    // Not an error: the number is only used in the message to another process.
  }
}

// The beginning of the file, longer than kMaxProcessDigits if the file is.
std::string RunLock::content() const {
  std::string bytes(kMaxProcessDigits + 1, '\0');
  const ssize_t n = fs_.pread(descriptor_, bytes.data(), bytes.size(), 0);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(0, n)));
  return bytes;
}

RunLock::~RunLock() { fs_.close(descriptor_); }

}  // namespace maki
