// An output that is too large to be held in memory, written piece by piece: until it is committed, there is no new
// file, and what is at its place is untouched.
#pragma once

#include <array>
#include <string>

#include "data/io/hash.h"
#include "data/io/output.h"

namespace maki {

class AtomicFile {
 public:
  /// Begins the file with `header_size` zeros, which commit() replaces, under an unused name, and makes the missing
  /// directories of its path. Throws what require_file_place() throws, and CheckpointError.
  AtomicFile(FileSystem& fs, const OutputPath& out, std::size_t header_size);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throws CheckpointError, for instance because the disk is full; the object must then not be used any more.
  void append(Bytes bytes);
  /// Bytes so far, with those of the header.
  std::uint64_t size() const { return size_; }
  /// XXH3-128 of what was appended.
  std::array<std::uint8_t, 16> hash() const { return hash_.value(); }
  /// Writes the header and what is buffered, makes the file durable, reads it back, compares, and renames it. Throws as
  /// write_output() does. Requires: the header has header_size bytes; called once.
  void commit(Bytes header);

 private:
  void flush();
  void verify(Bytes header);

  FileSystem& fs_;
  OutputPlace place_;
  Parents parents_;
  Temporary temporary_;
  Descriptor file_;
  std::string buffer_;
  std::uint64_t size_;
  Hash128 hash_;
};

}  // namespace maki
