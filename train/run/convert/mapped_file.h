// A model file of another program: memory mapping says where its parts are, and system calls read them.
#pragma once

#include <string>

#include "data/io/file_mapping.h"
#include "data/io/file_system.h"
#include "data/io/stable_file.h"

namespace maki {

class MappedFile {
 public:
  /// Throws CheckpointError if it is no regular file or cannot be read.
  explicit MappedFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  /// The places of all bytes. Whoever reads them here and not with read() ends the process if the file has become
  /// shorter or the disk fails.
  Bytes bytes() const { return mapping_.bytes(); }
  bool has(Bytes part) const {
    return part.data() >= bytes().data() && part.data() + part.size() <= bytes().data() + bytes().size();
  }
  /// Copies a part of bytes(), from its beginning on. Throws CheckpointError if it cannot be read, or if the file has
  /// been changed since it was opened. Requires: has(part), and `into` is not longer.
  void read(Bytes part, std::span<std::byte> into) const;

 private:
  StableFile file_;
  FileMapping mapping_;
};

}  // namespace maki
