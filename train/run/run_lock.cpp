#include "train/run/run_lock.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/io/error.h"
#include "data/io/os.h"

namespace maki {
namespace {

constexpr std::size_t kMaxProcessDigits = 20;  // of a number of 64 bits

// Whether the path still names the open file: a start that fails removes the lock file that it created, and a lock on a
// removed file protects nothing.
bool is_current(FileSystem& fs, int descriptor, const std::string& path) {
  struct stat ours = {}, named = {};
  return fs.fstat(descriptor, ours) == 0 && lstat(path.c_str(), &named) == 0 && is_same_file(ours, named);
}

}  // namespace

RunLock::RunLock(const RunDirectory& run) : fs_(run.file_system()) {
  const std::string path = file(run);
  do {
    open(path);
    lock(run, path);
  } while (!is_current(fs_, file_->number(), path));
  write_process(run, path);
}

bool RunLock::is_held(const RunDirectory& run) {
  std::int64_t holder = 0;
  return std::ifstream(file(run)) >> holder && os::is_locked(file(run), holder);
}

void RunLock::open(const std::string& path) {
  int opened = -1;
  do {
    opened = fs_.open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
    created_ = opened >= 0;
    if (created_ || errno != EEXIST) break;
    opened = fs_.open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
  } while (opened < 0 && errno == ENOENT);  // removed between the two calls
  check<CheckpointError>(opened >= 0 || errno != ELOOP, "{}: must be a file that maki wrote, but is a link; remove it",
                         path);
  file_.emplace(fs_, path, Descriptor::Opened{opened});
  const struct stat status = file_->status();
  check<CheckpointError>(S_ISREG(status.st_mode) && status.st_nlink <= 1,
                         "{}: must be a regular file with one name, which maki wrote; remove it", path);
}

void RunLock::lock(const RunDirectory& run, const std::string& path) {
  if (fs_.flock(file_->number(), LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  if (created_ && error != EWOULDBLOCK) fs_.unlink(path);
  check<CheckpointError>(error == EWOULDBLOCK,
                         "{}: cannot be locked: {} (file system: {}); put the run on a file system that supports flock",
                         path, std::strerror(error), os::file_system_type(file_->number()));
  const std::string holder = content();
  fail<OccupiedOutput>("{}: is locked by {}{}; wait until it ends, or stop it", run.path(),
                       holder.empty() ? "another process" : "process ", holder);
}

// Nothing is overwritten but the number of a process, or what a power failure left of one: zeros, or in the directory
// of a run, where nobody else has a lock file, anything that short.
void RunLock::write_process(const RunDirectory& run, const std::string& path) {
  const std::string before = content(), now = std::to_string(getpid());
  const bool number = std::ranges::all_of(before, [](char c) { return c == '\0' || (c >= '0' && c <= '9'); });
  check<CheckpointError>(before.size() <= kMaxProcessDigits && (number || run.exists()),
                         "{}: must contain nothing but the number of a process, as maki writes it; move the file away",
                         path);
  if (fs_.pwrite(file_->number(), now.data(), now.size(), 0) < 0 ||
      ftruncate(file_->number(), static_cast<off_t>(now.size())) != 0) {
    // Not an error: the number is only used in the message to another process.
  }
}

// The beginning of the file, longer than kMaxProcessDigits if the file is.
std::string RunLock::content() const {
  std::string bytes(kMaxProcessDigits + 1, '\0');
  const ssize_t n = fs_.pread(file_->number(), bytes.data(), bytes.size(), 0);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(0, n)));
  return bytes;
}

}  // namespace maki
