#include "data/io/descriptor.h"

#include <cstring>
#include <fcntl.h>
#include <new>

namespace maki {

Descriptor::Descriptor(FileSystem& fs, const std::string& path, int flags, Thrower error)
    : fs_(fs), path_(path), error_(error), number_(retry([&] { return fs.open(path, flags, 0644); })) {
  require(number_ >= 0, "cannot be opened");
}

Descriptor::Descriptor(FileSystem& fs, const std::string& path, Opened opened, Thrower error) try
    : fs_(fs), path_(path), error_(error), number_(opened.number) {
  require(number_ >= 0, "cannot be opened");
} catch (const std::bad_alloc&) {
  if (opened.number >= 0) fs.close(opened.number);
}

Descriptor::~Descriptor() {
  if (number_ >= 0) fs_.close(number_);
}

void Descriptor::write_all(Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t n = retry([&] { return fs_.write(number_, bytes.data(), bytes.size()); });
    if (n == 0) errno = ENOSPC;
    require(n > 0, "cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void Descriptor::write_at(Bytes bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t n =
        retry([&] { return fs_.pwrite(number_, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (n == 0) errno = ENOSPC;
    require(n > 0, "cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

std::size_t Descriptor::read(std::span<std::byte> into) {
  const ssize_t n = retry([&] { return fs_.read(number_, into.data(), into.size()); });
  require(n >= 0, "cannot be read");
  return static_cast<std::size_t>(n);
}

std::size_t Descriptor::fill(std::span<std::byte> into) {
  std::size_t filled = 0;
  while (filled < into.size()) {
    const std::size_t n = read(into.subspan(filled));
    if (n == 0) break;
    filled += n;
  }
  return filled;
}

std::size_t Descriptor::read_at(std::uint64_t offset, std::span<std::byte> into) const {
  std::size_t filled = 0;
  while (filled < into.size()) {
    const ssize_t n = retry([&] {
      return fs_.pread(number_, into.data() + filled, into.size() - filled, static_cast<off_t>(offset + filled));
    });
    require(n >= 0, "cannot be read");
    if (n == 0) break;
    filled += static_cast<std::size_t>(n);
  }
  return filled;
}

struct stat Descriptor::status() const {
  struct stat status {};
  require(fs_.fstat(number_, status) == 0, "cannot be accessed");
  return status;
}

// Not retried: after a failed fsync the kernel may have dropped the unwritten pages, and another call would succeed.
void Descriptor::sync() { require(fs_.fsync(number_) == 0, "fsync failed"); }

// An interrupted close() is no failure: Linux has released the descriptor then.
void Descriptor::close() {
  const int status = fs_.close(std::exchange(number_, -1));
  require(status == 0 || errno == EINTR, "close failed");
}

void Descriptor::require(bool good, const char* failure) const {
  if (!good) error_(fmt::format("{}: {}: {}", path_, failure, std::strerror(errno)));
}

Descriptor open_regular(FileSystem& fs, const std::string& path, Thrower error) {
  // O_NONBLOCK: without it, open() on a named pipe would wait for a writer.
  Descriptor file(fs, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, error);
  if (!S_ISREG(file.status().st_mode)) error(path + ": is not a regular file");
  return file;
}

}  // namespace maki
