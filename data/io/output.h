// The one way in which a command opens what it writes, apart from the files of a run that it trains: what is there
// already is replaced only on request, nothing that the command reads is ever replaced, and neither is a device, a pipe
// or a link. Whatever a command writes is complete or not there.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "data/io/temporary.h"

namespace maki {

/// A second file that belongs to an output, with a name that follows from that of the first.
struct OutputCompanion {
  std::string suffix, text;
};

/// Where a command writes, as its user named it.
struct OutputPath {
  // NOLINTNEXTLINE(google-explicit-constructor): a path alone is an output that must be new
  OutputPath(std::string name = {}, bool replace = false, std::vector<std::string> read = {})
      : path(std::move(name)), force(replace), inputs(std::move(read)) {}

  std::string path;
  bool force;  ///< what is there may be replaced (--force)
  /// Files and directories that the command reads; - (standard input) and built-in texts are allowed.
  std::vector<std::string> inputs;
  std::optional<OutputCompanion> companion = {};

  std::string companion_path() const { return path + companion.value().suffix; }
};

/// What require_file_place() and require_directory_place() found out.
struct OutputPlace {
  std::string path;            ///< behind a symbolic link
  bool force = false;          ///< OutputPath::force
  std::optional<mode_t> mode;  ///< permissions of the file or directory that is there and will be replaced
  bool is_stream = false;      ///< a device or pipe, or what the standard output is: written to, and not replaced
  bool is_standard_output = false;
};
enum class Streams : bool { refused, accepted };

/// Whether the path leads to what the standard output is, such as /dev/stdout.
bool is_standard_output(const std::string& path);

/// Throws Error unless the path is free for a file: nothing is there; or a regular file that is not an input, if
/// `force` is set; or a device, a pipe, or the file that is the standard output, if `streams` allows it. A symbolic
/// link counts as the file to which it leads, and one that leads nowhere is refused, as are - and a name that ends with
/// a slash. Throws CheckpointError if the system cannot tell.
OutputPlace require_file_place(const OutputPath& out, Streams streams = Streams::accepted);
/// Throws Error for -, and unless the path is free for a directory: nothing is there, or an empty directory that is not
/// the current one, or with `force` one that neither is an input nor contains one. Whether what it contains may be
/// replaced is decided by OutputDirectory::commit().
OutputPlace require_directory_place(const OutputPath& out);

/// Writes a file with the concatenation of the pieces, under an unused name in the same directory, and renames it when
/// it is complete and durable, and before that makes the missing directories of its path; writes to a device or pipe
/// directly. A companion gets its place first and is removed if the file cannot follow. One that is there and has the
/// same text, such as that of a process that was killed in between, is left as it is.
/// Throws what require_file_place() throws, Error if another process made a file there meanwhile, and CheckpointError,
/// naming the file, if it cannot be written; what was there before is then intact, unless the sentence says that the
/// new file is complete.
void write_output(FileSystem& fs, const OutputPath& out, const std::vector<Bytes>& pieces);

/// Renames a complete file to its place and makes that durable. Throws as write_output() does.
void move_to_place(FileSystem& fs, Temporary& file, const OutputPlace& place);

/// A directory that is filled under an unused name beside its place, and renamed once.
class OutputDirectory {
 public:
  /// Creates the directory and its missing parents. Throws what require_directory_place() throws, and CheckpointError.
  OutputDirectory(FileSystem& fs, OutputPath out);
  /// Removes what the constructor created, unless the directory is in its place.
  ~OutputDirectory() = default;
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

  /// Where its files are to be written, by this process alone.
  const std::string& path() const { return temporary_.path(); }
  /// Calls write(), which writes files there; its CheckpointError names their places instead.
  template <class F>
  void fill(const F& write) {
    try {
      write();
    } catch (const CheckpointError& error) {
      fail_in_place(error.what());
    }
  }
  /// Gives the directory its place. A directory that is there is replaced, if it is empty or, with `force`, if every
  /// file in it has the name of a new one. Throws Error, naming another file, if not; CheckpointError if the directory
  /// cannot be renamed. What was there is then intact.
  void commit();

 private:
  [[noreturn]] void fail_in_place(std::string message) const;

  FileSystem& fs_;
  OutputPath out_;
  OutputPlace place_;
  Parents parents_;
  Temporary temporary_;
};

}  // namespace maki
