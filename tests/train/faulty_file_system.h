// A file system with a fault in the n-th call.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <string>
#include <vector>

#include "data/io/file_system.h"

namespace maki::tests {

/// Simulates the death of the process: after it is thrown, no call has an effect.
struct Crash {};

/// The real file system, with a fault in the n-th call.
class Faulty : public FileSystem {
 public:
  enum class Kind : std::uint8_t { none, error, no_memory, crash };
  Kind kind = Kind::none;
  int at = -1, error = 0;
  std::size_t max_written = SIZE_MAX;
  bool bad_disk = false;  ///< reads return other bytes than those written
  bool waits = true;      ///< for the disk, in fsync
  std::vector<std::string> calls;

  int open(const std::string& path, int flags, mode_t mode) override {
    return fails(flags & O_DIRECTORY ? "open directory" : "open") ? -1 : FileSystem::open(path, flags, mode);
  }
  ssize_t read(int file, void* bytes, std::size_t size) override {
    if (fails("read")) return -1;
    const ssize_t n = FileSystem::read(file, bytes, size);
    if (bad_disk && n > 0) static_cast<char*>(bytes)[n - 1] ^= 1;
    return n;
  }
  ssize_t write(int file, const void* bytes, std::size_t size) override {
    return fails("write") ? -1 : FileSystem::write(file, bytes, std::min(size, max_written));
  }
  ssize_t pwrite(int file, const void* bytes, std::size_t size, off_t offset) override {
    return fails("pwrite") ? -1 : FileSystem::pwrite(file, bytes, size, offset);
  }
  int fsync(int file) override { return fails("fsync") ? -1 : waits ? FileSystem::fsync(file) : 0; }
  int close(int file) override {
    const int status = FileSystem::close(file);  // Linux closes even when it reports an error
    return fails("close") ? -1 : status;
  }
  int rename(const std::string& from, const std::string& to) override {
    return fails("rename") ? -1 : FileSystem::rename(from, to);
  }
  int rename_to_new(const std::string& from, const std::string& to) override {
    return fails("rename") ? -1 : FileSystem::rename_to_new(from, to);
  }
  int exchange(const std::string& one, const std::string& other) override {
    return fails("exchange") ? -1 : FileSystem::exchange(one, other);
  }
  int unlink(const std::string& path) override { return fails("unlink") ? -1 : FileSystem::unlink(path); }
  int mkdir(const std::string& path, mode_t mode) override {
    return fails("mkdir") ? -1 : FileSystem::mkdir(path, mode);
  }
  int rmdir(const std::string& path) override { return fails("rmdir") ? -1 : FileSystem::rmdir(path); }

 private:
  bool fails(const char* call) {
    errno = EIO;  // of a call of the dead
    if (dead_) return true;
    calls.emplace_back(call);
    if (kind == Kind::none || static_cast<int>(calls.size()) - 1 != at) return false;
    // A destructor may make these calls.
    const bool may_throw = std::ranges::none_of(std::array{"close", "unlink", "rmdir"},
                                                [&](const char* each) { return std::strcmp(call, each) == 0; });
    dead_ = kind == Kind::crash;
    if (dead_ && may_throw) throw Crash{};
    if (kind == Kind::no_memory) {
      if (may_throw) throw std::bad_alloc();
      return false;
    }
    errno = error;
    return true;
  }
  bool dead_ = false;
};

}  // namespace maki::tests
