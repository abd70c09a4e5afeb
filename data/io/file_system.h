// The system calls behind every file that a run writes, in one virtual class, so that tests can make any of them fail;
// and the one way in which files are replaced: atomically and durably.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/types.h>
#include <vector>

namespace maki {

/// Each function returns what the system call returns, and leaves errno as the call set it.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int open(const std::string& path, int flags, mode_t mode);
  virtual ssize_t read(int descriptor, void* bytes, std::size_t size);
  virtual ssize_t write(int descriptor, const void* bytes, std::size_t size);
  virtual int fsync(int descriptor);
  virtual int close(int descriptor);
  virtual int rename(const std::string& from, const std::string& to);
  /// Fails with EEXIST if anything is at `to`.
  virtual int rename_to_new(const std::string& from, const std::string& to);
  /// Each gets the name of the other.
  virtual int exchange(const std::string& one, const std::string& other);
  virtual int unlink(const std::string& path);
  virtual ssize_t pwrite(int descriptor, const void* bytes, std::size_t size, off_t offset);
  virtual ssize_t pread(int descriptor, void* bytes, std::size_t size, off_t offset);
  virtual int fstat(int descriptor, struct stat& status);
  virtual int flock(int descriptor, int operation);
  virtual int mkdir(const std::string& path, mode_t mode);
  virtual int rmdir(const std::string& path);
};

/// The real file system: every function makes its system call. Lives until the program ends.
FileSystem& posix_file_system();

using Bytes = std::span<const std::byte>;
inline Bytes text_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::string_view bytes_text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// Replaces a file of a run atomically with the concatenation of the pieces: writes path.tmp, fsyncs it, reads it back
/// and compares, renames it, and fsyncs the directory. The lock of the run keeps others from using path.tmp; one that a
/// killed process left is removed. Throws CheckpointError with the path and the reason. If any step up to the rename
/// fails, the old file is untouched and the temporary one is removed; if the last fsync fails, the new file is in place
/// but may not survive a power failure. What a command writes elsewhere goes through write_output() (output.h).
void replace_file_atomically(FileSystem& fs, const std::string& path, const std::vector<Bytes>& pieces);

/// Creates a directory and its missing parents, and makes each durable (fsync of its parent). Every directory is
/// appended to `made` as soon as it is created, the outermost first; those that another process removes meanwhile are
/// created again. Throws CheckpointError, also if anything else is in the way; what `made` lists remains.
void make_directories(FileSystem& fs, const std::string& path, std::vector<std::string>& made);
/// Makes the entries of a directory durable (fsync). Throws CheckpointError.
void sync_directory(FileSystem& fs, const std::string& path);

/// Whether two results of stat() are of one file, whatever its names are.
inline bool is_same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}
/// The directory part of a path; "." if it has none.
std::string parent_directory(const std::string& path);
/// Whether there is a file or directory of this path. Throws CheckpointError if the system cannot tell (permissions, a
/// loop of symbolic links, …).
bool file_exists(const std::string& path);
/// What is at a path itself, which may be a symbolic link; not_found if nothing is. Throws as file_exists() does.
std::filesystem::file_type entry_kind(const std::string& path);
/// The names of a directory's entries, sorted by bytes; empty if there is no such directory or the path is that of a
/// file. Throws CheckpointError if it cannot be listed.
std::vector<std::string> file_names(const std::string& directory);

}  // namespace maki
