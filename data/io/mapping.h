// A part of a file in memory without a copy of it: its bytes need no memory of the process, pages that nobody reads are
// not loaded, and those that are loaded are shared with the page cache of the operating system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace maki {

class Mapping {
 public:
  enum class Access : bool { read, copy_on_write };

  /// Maps `length` bytes from `offset` of an open file, which may then be closed, replaced or deleted, but must not be
  /// shortened or overwritten while the mapping exists: reading bytes that are gone ends the process. Files that others
  /// can change are read as StableFile (stable_file.h). Null if the length is 0 or the system cannot map the file.
  static std::shared_ptr<const Mapping> create(int descriptor, std::uint64_t offset, std::uint64_t length,
                                               Access access);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  /// May be written to with Access::copy_on_write alone: changes stay in this process. Aligned as `offset` is, up to
  /// the size of a page.
  std::span<std::byte> bytes() const { return bytes_; }
  /// Loads bytes [begin, end) from the file. Without this call the first access would load them, and a disk that fails
  /// would then end the process. Returns 0, or a number of errno: EINVAL if the system cannot report errors.
  ///
  /// Thread safety: may be called by several threads.
  int load(std::size_t begin, std::size_t end) const;
  /// Frees the memory that holds bytes [0, end), or all if end is beyond them; they are read again when they are
  /// needed, so pointers to them stay valid. Requires: Access::read.
  void release(std::size_t end) const;

 private:
  Mapping(std::byte* memory, std::size_t size, std::span<std::byte> bytes)
      : memory_(memory), size_(size), bytes_(bytes) {}

  std::byte* memory_;
  std::size_t size_;
  std::span<std::byte> bytes_;
};

}  // namespace maki
