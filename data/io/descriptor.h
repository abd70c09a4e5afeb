// An open file of a FileSystem: reads and writes that are complete or throw.
#pragma once

#include <cerrno>
#include <span>
#include <string>
#include <utility>

#include "data/io/error.h"
#include "data/io/file_system.h"

namespace maki {

/// Makes a system call until no signal interrupts it, and returns what it returns.
template <class Call>
auto retry(const Call& call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

/// Owns an open file descriptor; a new file gets the permissions 0644. Every failure throws an error of the given type
/// with the path, what failed and the reason. close() reports failures; the destructor, which reports none, closes what
/// an error has left open. Requires: the file system outlives it.
class Descriptor {
 public:
  Descriptor(FileSystem& fs, const std::string& path, int flags, Thrower error = throw_as<CheckpointError>);
  /// What a call that opens has returned; a negative number throws with the reason in errno.
  struct Opened {
    int number;
  };
  Descriptor(FileSystem& fs, const std::string& path, Opened opened, Thrower error = throw_as<CheckpointError>);
  Descriptor(Descriptor&& other) noexcept
      : fs_(other.fs_),
        path_(std::move(other.path_)),
        error_(other.error_),
        number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor();

  void write_all(Bytes bytes);
  void write_at(Bytes bytes, std::uint64_t offset);
  /// Reads what there is, at most as much as `into` holds; returns the number of bytes, 0 at the end of the file.
  std::size_t read(std::span<std::byte> into);
  /// Each reads until `into` is full or the file ends, read_at() from an offset without moving the position; returns
  /// the number of bytes read.
  std::size_t fill(std::span<std::byte> into);
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) const;
  int number() const { return number_; }
  const std::string& path() const { return path_; }
  struct stat status() const;
  void sync();
  void close();

 private:
  void require(bool good, const char* failure) const;

  FileSystem& fs_;
  std::string path_;
  Thrower error_;
  int number_;
};

/// Opens a regular file for reading. Throws also if it is anything else; a named pipe is not waited for.
Descriptor open_regular(FileSystem& fs, const std::string& path, Thrower error);

}  // namespace maki
