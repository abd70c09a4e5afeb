// A file that is read through memory mapping: its bytes need no memory of the process, and pages that nobody reads are
// not loaded.
#pragma once

#include <string>

#include "train/run/file_system.h"

namespace maki {

class MappedFile {
 public:
  /// Maps a regular file, which must not be changed while it is mapped. Throws CheckpointError if it cannot be read.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  Bytes bytes() const { return bytes_; }

 private:
  std::string path_;
  Bytes bytes_;
};

}  // namespace maki
