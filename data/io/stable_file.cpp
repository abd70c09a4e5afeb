#include "data/io/stable_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/io/error.h"

namespace maki {
namespace {

struct stat status_of(int descriptor, const std::string& path) {
  struct stat status {};
  const bool known = fstat(descriptor, &status) == 0;  // before the arguments below are evaluated, which read errno
  check<CorpusError>(known, "{}: cannot be accessed: {}", path, std::strerror(errno));
  return status;
}

}  // namespace

// O_NONBLOCK: without it, open() on a named pipe would wait for a writer.
StableFile::StableFile(const std::string& path)
    : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)) {
  check<CorpusError>(descriptor_ >= 0, "{}: cannot be opened: {}", path, std::strerror(errno));
  try {
    const struct stat status = status_of(descriptor_, path);
    check<CorpusError>(S_ISREG(status.st_mode), "{}: is not a regular file", path);
    size_ = static_cast<std::uint64_t>(status.st_size);
    modified_ = status.st_mtim;
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

StableFile::~StableFile() { close(descriptor_); }

void StableFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  bool ended = false;
  while (!into.empty() && !ended) {
    const ssize_t n = pread(descriptor_, into.data(), into.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    check<CorpusError>(n >= 0, "{}: cannot be read: {}", path_, std::strerror(errno));
    ended = n == 0;
    into = into.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  require_unchanged();
  check<CorpusError>(!ended, "{}: ends before byte {}, although it has {}", path_, offset + into.size(), size_);
}

// Called after reading: a system call that writes sets the time before it changes any byte.
void StableFile::require_unchanged() const {
  const struct stat now = status_of(descriptor_, path_);
  const auto size = static_cast<std::uint64_t>(now.st_size);
  check<CorpusError>(size == size_,
                     "{}: must stay as it is while it is used; it had {} bytes and now has {}; restore it, or start "
                     "again with the new file",
                     path_, size_, size);
  check<CorpusError>(now.st_mtim.tv_sec == modified_.tv_sec && now.st_mtim.tv_nsec == modified_.tv_nsec,
                     "{}: must stay as it is while it is used; it has been written to since it was opened; restore it, "
                     "or start again with the new file",
                     path_);
}

}  // namespace maki
