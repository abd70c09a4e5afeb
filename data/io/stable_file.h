// A regular file that is read in parts while other work goes on, and that must stay as it is meanwhile. Nothing is
// mapped: a mapped file that becomes shorter, or a disk that fails, would end the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>
#include <string>

#include "data/io/descriptor.h"

namespace maki {

/// Thread safety: may be read on several threads at once.
class StableFile {
 public:
  /// Throws an error of the given type, as read() does, if it is anything else, cannot be opened, or is a pointer of
  /// Git LFS.
  explicit StableFile(const std::string& path, Thrower error = throw_as<CorpusError>);

  const std::string& path() const { return file_.path(); }
  std::uint64_t size() const { return size_; }
  /// Fills `into` with the bytes from `offset` on. Throws if they cannot be read, and if the file has been written to
  /// since it was opened, as its size and the time of its last modification tell; so whatever was read without an
  /// exception is what the file contained then. A file of the same name in its place, or no file, is no change.
  /// Requires: the file had these bytes.
  void read(std::uint64_t offset, std::span<std::byte> into) const;

 private:
  void require_unchanged() const;

  Thrower error_;
  Descriptor file_;
  std::uint64_t size_ = 0;
  timespec modified_ = {};
};

}  // namespace maki
