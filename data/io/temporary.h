// Files and directories under construction. Whoever makes one removes it unless it reaches its place: after an error of
// any kind, and when a signal ends the program.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "data/io/descriptor.h"

namespace maki {

/// Owns the name of a file or directory that its owner is about to make, and removes what has the name, with all that
/// it contains, unless it was moved or kept. Removing a name that nothing has is no error.
class Temporary {
 public:
  /// Makes nothing.
  Temporary(FileSystem& fs, std::string path);
  ~Temporary() { remove(); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  const std::string& path() const { return path_; }
  /// Makes the file for this place, and opens it for reading and writing; errors of the descriptor name the place.
  /// Throws as fail_for() does, also if anything has the name already (a symbolic link is not followed), which then
  /// remains.
  Descriptor create_for(const std::string& place);
  /// Makes the directory for this place. Throws CheckpointError, naming the place, also if anything has the name
  /// already, which then remains.
  void create_directory_for(const std::string& place);
  /// Makes the file with the concatenation of the pieces, syncs it, reads it back and compares. Throws CheckpointError.
  void write(const std::vector<Bytes>& pieces);
  /// Renames it; what is at `place` is replaced. Throws CheckpointError if that fails. The object then owns nothing.
  void move_to(const std::string& place);
  /// Renames it, or throws Error if anything is at `place` already.
  void move_to_new(const std::string& place);
  /// What has the name now remains.
  void keep();
  /// Removes it now. Returns false if something with this name is left.
  bool remove();
  /// Removes it and throws CheckpointError with the reason why there is no new file at `place`, the message of another
  /// error, of which the name at its beginning is left out; the sentence also says that the previous file is intact, if
  /// there is one.
  [[noreturn]] void fail_for(const std::string& place, const char* reason);

 private:
  Descriptor create(const std::string& name_in_errors);

  FileSystem& fs_;
  std::string path_;
  std::size_t slot_;  // in the list of what a signal removes
  bool owned_ = true;
};

/// The directories in which a file or directory is to be made.
class Parents {
 public:
  /// Makes those that are missing, as make_directories() does.
  Parents(FileSystem& fs, const std::string& place);
  /// Removes those that it made and that are empty, because nothing was made in them.
  ~Parents() { remove_empty(); }
  Parents(const Parents&) = delete;
  Parents& operator=(const Parents&) = delete;

 private:
  void remove_empty();

  FileSystem& fs_;
  std::vector<std::string> made_;  // the outermost first
};

/// Throws CheckpointError unless what was read back from a file is what was written to it.
void require_read_back(bool same, const std::string& path);

/// A name that nothing has, in the directory of `place`: .NAME.<16 hexadecimal digits>.tmp, where NAME is the beginning
/// of the last part of `place`.
std::string unused_name_beside(const std::string& place);

/// Makes the entry of a file or directory durable that was just renamed to `place`. Throws CheckpointError, which says
/// that it is complete.
void sync_place(FileSystem& fs, const std::string& place);

/// Removes what the living objects own. May be called by a signal handler, after which the program must end at once.
void remove_temporaries();

}  // namespace maki
