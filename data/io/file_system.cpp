#include "data/io/file_system.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

#include "data/io/descriptor.h"
#include "data/io/error.h"
#include "data/io/os.h"
#include "data/io/temporary.h"

namespace maki {

int FileSystem::open(const std::string& path, int flags, mode_t mode) {
  return ::open(path.c_str(), flags | O_CLOEXEC, mode);
}
ssize_t FileSystem::read(int descriptor, void* bytes, std::size_t size) { return ::read(descriptor, bytes, size); }
ssize_t FileSystem::write(int descriptor, const void* bytes, std::size_t size) {
  return ::write(descriptor, bytes, size);
}
int FileSystem::fsync(int descriptor) { return os::sync(descriptor); }
int FileSystem::close(int descriptor) { return ::close(descriptor); }
int FileSystem::rename(const std::string& from, const std::string& to) { return std::rename(from.c_str(), to.c_str()); }
int FileSystem::rename_to_new(const std::string& from, const std::string& to) {
  if (os::rename_to_new(from.c_str(), to.c_str()) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  // The file system does not offer it: between the two calls, another process may make a file of this name.
  if (faccessat(AT_FDCWD, to.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0) return rename(from, to);
  errno = EEXIST;
  return -1;
}
int FileSystem::exchange(const std::string& one, const std::string& other) {
  return os::exchange(one.c_str(), other.c_str());
}
int FileSystem::unlink(const std::string& path) { return ::unlink(path.c_str()); }
ssize_t FileSystem::pwrite(int descriptor, const void* bytes, std::size_t size, off_t offset) {
  return ::pwrite(descriptor, bytes, size, offset);
}
ssize_t FileSystem::pread(int descriptor, void* bytes, std::size_t size, off_t offset) {
  return ::pread(descriptor, bytes, size, offset);
}
int FileSystem::fstat(int descriptor, struct stat& status) { return ::fstat(descriptor, &status); }
int FileSystem::flock(int descriptor, int operation) { return ::flock(descriptor, operation); }
int FileSystem::mkdir(const std::string& path, mode_t mode) { return ::mkdir(path.c_str(), mode); }
int FileSystem::rmdir(const std::string& path) { return ::rmdir(path.c_str()); }

FileSystem& posix_file_system() {
  static FileSystem system;
  return system;
}

std::string parent_directory(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

bool file_exists(const std::string& path) {
  std::error_code error;
  const bool there = std::filesystem::exists(path, error);
  check<CheckpointError>(!error, "{}: cannot be accessed: {}", path, error.message());
  return there;
}

std::filesystem::file_type entry_kind(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_type kind = std::filesystem::symlink_status(path, error).type();
  check<CheckpointError>(kind != std::filesystem::file_type::none, "{}: cannot be accessed: {}", path, error.message());
  return kind;
}

std::vector<std::string> file_names(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator at(directory, error), end;
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory) return names;
  for (; !error && at != end; at.increment(error)) names.push_back(at->path().filename().string());
  check<CheckpointError>(!error, "{}: cannot be listed: {}", directory, error.message());
  std::ranges::sort(names);
  return names;
}

void replace_file_atomically(FileSystem& fs, const std::string& path, const std::vector<Bytes>& pieces) {
  Temporary temporary(fs, path + ".tmp");
  fs.unlink(temporary.path());
  try {
    temporary.write(pieces);
    temporary.move_to(path);
  } catch (const CheckpointError& error) {
    temporary.fail_for(path, error.what());
  }
  sync_place(fs, path);
}

void sync_directory(FileSystem& fs, const std::string& path) {
  Descriptor directory(fs, path, O_RDONLY | O_DIRECTORY);
  directory.sync();
}

namespace {

// Makes a directory durable that a process may have made and been killed before it did that: then it is empty, and
// whoever made it can read its parent. Returns false if another process has removed the parent meanwhile.
bool make_durable_if_empty(FileSystem& fs, const std::string& directory) {
  std::error_code error;
  const std::string parent = parent_directory(directory);
  const bool empty = std::filesystem::is_empty(directory, error) && !error;
  if (!empty || access(parent.c_str(), R_OK) != 0) return true;
  try {
    sync_directory(fs, parent);
    return true;
  } catch (const CheckpointError&) {
    if (std::filesystem::is_directory(parent, error)) throw;
    return false;
  }
}

// Creates what is missing of a path, component by component as the system reads them: what ".." means depends on the
// links before it. Returns false if another process has removed one of the directories meanwhile.
bool try_make_directories(FileSystem& fs, const std::string& path, std::vector<std::string>& made) {
  std::filesystem::path prefix;
  for (const std::filesystem::path& part : std::filesystem::path(path)) {
    prefix /= part;
    std::error_code ignored;
    const std::string directory = prefix.string();
    if (std::filesystem::is_directory(prefix, ignored)) {
      if (!make_durable_if_empty(fs, directory)) return false;
      continue;
    }
    if (fs.mkdir(directory, 0777) == 0) {
      made.push_back(directory);
      sync_directory(fs, parent_directory(directory));
      continue;
    }
    const int error = errno;
    if (error == ENOENT) return false;
    check<CheckpointError>(error == EEXIST, "{}: cannot be created: {}", directory, std::strerror(error));
    // Another process may have created it.
    if (std::filesystem::is_directory(prefix, ignored)) continue;
    const auto kind = std::filesystem::symlink_status(prefix, ignored).type();
    if (kind == std::filesystem::file_type::not_found) return false;
    fail<CheckpointError>("{}: cannot be created: {} is not a directory", path, directory);
  }
  return true;
}

}  // namespace

void make_directories(FileSystem& fs, const std::string& path, std::vector<std::string>& made) {
  constexpr int kMaxAttempts = 100;  // an attempt fails only if another process removes a directory meanwhile
  for (int attempt = 1; !try_make_directories(fs, path, made); ++attempt)
    check<CheckpointError>(attempt < kMaxAttempts, "{}: cannot be created: {}", path, std::strerror(ENOENT));
}

}  // namespace maki
