// A file that is too large to be held in memory, written piece by piece and replaced atomically like every other file
// of maki: until it is committed, the file of this name is untouched.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "data/text/hash.h"
#include "train/run/descriptor.h"

namespace maki {

class AtomicFile {
 public:
  /// Begins path.tmp with `header_size` zeros, which commit() replaces. Throws CheckpointError.
  AtomicFile(FileSystem& fs, const std::string& path, std::size_t header_size);
  /// Removes path.tmp, unless replace() was called or an error has removed it already.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throws CheckpointError, for instance because the disk is full; path.tmp is then removed, and the object must not
  /// be used any more.
  void append(Bytes bytes);
  /// Bytes so far, with those of the header.
  std::uint64_t size() const { return size_; }
  /// XXH3-128 of what was appended.
  std::array<std::uint8_t, 16> hash() const { return hash_.value(); }
  /// finish() and replace().
  void commit(Bytes header) {
    finish(header);
    replace();
  }
  /// Writes the header and what is buffered to path.tmp, makes it durable, reads it back and compares. Throws
  /// CheckpointError; path.tmp is then removed. Requires: the header has header_size bytes; called once.
  void finish(Bytes header);
  /// Renames path.tmp and makes the directory durable. Throws CheckpointError; the previous file is then intact, unless
  /// only the directory could not be made durable: then the new file is in place. Requires: finish() was called.
  void replace();
  const std::string& path() const { return path_; }
  /// Whether the new file is in place.
  bool replaced() const { return replaced_; }

 private:
  void flush();
  void verify(Bytes header);

  FileSystem& fs_;
  std::string path_;
  std::optional<Descriptor> file_;
  std::string buffer_;
  std::uint64_t size_ = 0;
  Hash128 hash_;
  bool replaced_ = false;
  bool open_ = true;  // the destructor has to remove path.tmp
};

}  // namespace maki
