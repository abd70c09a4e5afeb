// A part of a file in memory without a copy of it: pages are shared with the page cache of the operating system and
// with other processes, until somebody writes to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace maki {

class SectionMapping {
 public:
  /// Maps `length` bytes from `offset` of an open file, which must not be shortened or overwritten while the mapping
  /// exists; it may be replaced or deleted. Null if the length is 0, if the system cannot map the file, or if it cannot
  /// report errors of load().
  static std::shared_ptr<const SectionMapping> create(int descriptor, std::uint64_t offset, std::uint64_t length);
  ~SectionMapping();
  SectionMapping(const SectionMapping&) = delete;
  SectionMapping& operator=(const SectionMapping&) = delete;

  /// May be written to: changes stay in this process. Aligned as `offset` is, up to the size of a page.
  std::span<std::byte> bytes() const { return bytes_; }
  /// Loads bytes [begin, end) from the file. Without this call the first access would load them, and a disk that fails
  /// would then end the process. Returns 0, or a number of errno.
  ///
  /// Thread safety: may be called by several threads.
  int load(std::size_t begin, std::size_t end) const;

 private:
  SectionMapping(std::byte* memory, std::size_t size, std::span<std::byte> bytes)
      : memory_(memory), size_(size), bytes_(bytes) {}

  std::byte* memory_;
  std::size_t size_;
  std::span<std::byte> bytes_;
};

}  // namespace maki
