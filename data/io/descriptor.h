// An open file of a FileSystem: reads and writes that are complete or throw.
#pragma once

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <utility>

#include "data/io/error.h"
#include "data/io/file_system.h"

namespace maki {

/// Owns an open file descriptor; a new file gets the permissions 0644. Every failure throws CheckpointError with the
/// path, the call and the reason. close() reports failures; the destructor, which reports none, closes what an error
/// has left open.
class Descriptor {
 public:
  Descriptor(FileSystem& fs, const std::string& path, int flags)
      : fs_(fs), path_(path), number_(fs.open(path, flags, 0644)) {
    require(number_ >= 0, "open");
  }
  /// A copy of an open descriptor, which shares its position.
  struct Copy {
    int of;
  };
  Descriptor(FileSystem& fs, const std::string& path, Copy copy)
      : fs_(fs), path_(path), number_(fcntl(copy.of, F_DUPFD_CLOEXEC, 0)) {
    require(number_ >= 0, "dup");
  }
  ~Descriptor() {
    if (number_ >= 0) fs_.close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void write_all(Bytes bytes) {
    while (!bytes.empty()) {
      const ssize_t n = fs_.write(number_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n == 0) errno = ENOSPC;
      require(n > 0, "write");
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }
  void write_at(Bytes bytes, std::uint64_t offset) {
    std::size_t written = 0;
    while (written < bytes.size()) {
      const ssize_t n =
          fs_.pwrite(number_, bytes.data() + written, bytes.size() - written, static_cast<off_t>(offset + written));
      if (n < 0 && errno == EINTR) continue;
      if (n == 0) errno = ENOSPC;
      require(n > 0, "write");
      written += static_cast<std::size_t>(n);
    }
  }
  /// Reads until `bytes` is full or the file ends; returns the number of bytes read.
  std::size_t read_some(std::span<std::byte> bytes) {
    std::size_t filled = 0;
    while (filled < bytes.size()) {
      const ssize_t n = fs_.read(number_, bytes.data() + filled, bytes.size() - filled);
      if (n < 0 && errno == EINTR) continue;
      require(n >= 0, "read");
      if (n == 0) break;
      filled += static_cast<std::size_t>(n);
    }
    return filled;
  }
  int number() const { return number_; }
  struct stat status() const {
    struct stat status {};
    require(fs_.fstat(number_, status) == 0, "fstat");
    return status;
  }
  // Not retried: after a failed fsync the kernel may have dropped the unwritten pages, and another call would succeed.
  void sync() { require(fs_.fsync(number_) == 0, "fsync"); }
  // An interrupted close() is no failure: Linux has released the descriptor then.
  void close() {
    const int status = fs_.close(std::exchange(number_, -1));
    require(status == 0 || errno == EINTR, "close");
  }

 private:
  void require(bool good, const char* call) const {
    check<CheckpointError>(good, "{}: {} failed: {}", path_, call, std::strerror(errno));
  }

  FileSystem& fs_;
  std::string path_;
  int number_;
};

}  // namespace maki
