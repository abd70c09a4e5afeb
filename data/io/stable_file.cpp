#include "data/io/stable_file.h"

#include "data/io/file.h"
#include "data/io/os.h"

namespace maki {

StableFile::StableFile(const std::string& path, Thrower error)
    : error_(error), file_(open_regular(posix_file_system(), path, error)) {
  const struct stat status = file_.status();
  size_ = static_cast<std::uint64_t>(status.st_size);
  modified_ = os::modified(status);
  std::string beginning(std::min<std::uint64_t>(size_, kGitLfsPointer.size()), '\0');
  file_.read_at(0, std::as_writable_bytes(std::span(beginning)));
  refuse_git_lfs_pointer(beginning, path, error);
}

void StableFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  const std::size_t n = file_.read_at(offset, into);
  require_unchanged();
  if (n < into.size())
    error_(fmt::format("{}: ends before byte {}, although it has {}", path(), offset + into.size(), size_));
}

// Called after reading: a system call that writes sets the time before it changes any byte.
void StableFile::require_unchanged() const {
  const struct stat now = file_.status();
  const auto size = static_cast<std::uint64_t>(now.st_size);
  const timespec last = os::modified(now);
  const bool modified = last.tv_sec != modified_.tv_sec || last.tv_nsec != modified_.tv_nsec;
  if (size == size_ && !modified) return;
  error_(fmt::format("{}: must stay as it is while it is used; it {}; restore it, or start again with the new file",
                     path(),
                     size != size_ ? fmt::format("had {} bytes and now has {}", size_, size)
                                   : "has been written to since it was opened"));
}

}  // namespace maki
