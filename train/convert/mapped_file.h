// A model file of another program, read through memory mapping (data/text/file_mapping.h).
#pragma once

#include <string>

#include "data/text/file_mapping.h"
#include "train/run/file_system.h"

namespace maki {

class MappedFile {
 public:
  /// Maps a regular file, which must not be changed while it is mapped. Throws CheckpointError if it cannot be read.
  explicit MappedFile(const std::string& path);

  const std::string& path() const { return path_; }
  Bytes bytes() const { return mapping_.bytes(); }

 private:
  std::string path_;
  FileMapping mapping_;
};

}  // namespace maki
