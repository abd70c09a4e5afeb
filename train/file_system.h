// The system calls behind every file a run writes, in one place, so that tests can let any of them fail; and the one
// way in which a file is replaced: whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/types.h>
#include <vector>

namespace maki {

/// Each call returns what the system call returns and leaves errno.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int open(const std::string& path, int flags, mode_t mode);
  virtual ssize_t read(int descriptor, void* bytes, std::size_t size);
  virtual ssize_t write(int descriptor, const void* bytes, std::size_t size);
  virtual int fsync(int descriptor);
  virtual int close(int descriptor);
  virtual int rename(const std::string& from, const std::string& to);
  virtual int unlink(const std::string& path);
  virtual ssize_t pread(int descriptor, void* bytes, std::size_t size, off_t offset);
  virtual int fstat(int descriptor, struct stat& status);
  virtual int flock(int descriptor, int operation);
  virtual int mkdir(const std::string& path, mode_t mode);
  virtual int rmdir(const std::string& path);
};

/// The real one.
FileSystem& posix();

using Bytes = std::span<const std::byte>;
inline Bytes as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Replaces `path` by the pieces, one after another: writes path.tmp, fsyncs it, reads it back and compares, renames
/// it, and fsyncs the directory. On any failure the old file is untouched, the temporary one removed, and a
/// CheckpointError names the path and the reason.
void commit_file(FileSystem& fs, const std::string& path, const std::vector<Bytes>& pieces);

/// Makes a directory and those on the way to it, each durable (fsync of its parent). What was made is appended to
/// `made`, the outermost first, as it happens. Throws CheckpointError.
void make_directories(FileSystem& fs, const std::string& path, std::vector<std::string>& made);
/// Makes the names in a directory durable. Throws CheckpointError.
void sync_directory(FileSystem& fs, const std::string& path);
/// "ext4", "nfs", or the number that statfs(2) gives: the type of the file system that a file is on.
std::string file_system_type(int descriptor);

/// All bytes of a file. Throws CheckpointError, also for one with more than `most`.
std::string read_whole(FileSystem& fs, const std::string& path, std::size_t most = SIZE_MAX);
std::string parent_directory(const std::string& path);
/// Throws CheckpointError when the system will not say.
bool file_exists(const std::string& path);
/// Names of what is in a directory, sorted; none where there is no such directory. Throws CheckpointError when it
/// cannot be listed.
std::vector<std::string> names_in(const std::string& directory);

}  // namespace maki
