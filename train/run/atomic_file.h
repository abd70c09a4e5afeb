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
  /// Removes path.tmp, unless the file was committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throws CheckpointError, for instance because the disk is full.
  void append(Bytes bytes);
  /// Bytes so far, with those of the header.
  std::uint64_t size() const { return size_; }
  /// XXH3-128 of what was appended.
  std::array<std::uint8_t, 16> hash() const { return hash_.value(); }
  /// Writes the header and what is buffered, makes the file durable, reads it back and compares, and renames it. Throws
  /// CheckpointError; the previous file is then intact. Requires: the header has header_size bytes.
  void commit(Bytes header);

 private:
  void flush();
  void verify(Bytes header);

  FileSystem& fs_;
  std::string path_;
  std::optional<Descriptor> file_;
  std::string buffer_;
  std::uint64_t size_ = 0;
  Hash128 hash_;
  bool open_ = true;  // path.tmp has to be removed
};

}  // namespace maki
