// A file that is read through memory mapping: its bytes need no memory of the process, and pages that nobody reads are
// not loaded.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace maki {

class FileMapping {
 public:
  /// Maps the first `size` bytes of an open file, which the caller may close afterwards; `path` is its name for
  /// messages. Throws CorpusError if it cannot be mapped; of 0 bytes nothing is. Requires: the file has as many bytes,
  /// and nobody else changes it while it is mapped: reading bytes that are gone would end the process. Files that
  /// others can change are read as StableFile (stable_file.h).
  FileMapping(int descriptor, std::size_t size, const std::string& path);
  ~FileMapping();
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  /// Frees the memory that holds bytes [0, end) at the moment, or all if end is beyond them; they are read again when
  /// they are needed, so pointers to them stay valid.
  void release(std::size_t end) const;

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace maki
