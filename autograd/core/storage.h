// Storage: a refcounted block of memory from a pool. Freed blocks go to free lists by size, so a training step that
// repeats its shapes allocates nothing after the first. Where shapes keep changing, the pool holds at most one and a half
// times the memory that was ever in use at once (and 8 MiB): it returns the blocks that have been free for longest.
// Blocks are 64-byte aligned and uninitialised; debug builds fill freed ones with 0xFF (NaN in either precision),
// address-sanitizer builds poison them. Handles may be dropped on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "autograd/core/check.h"

namespace maki {

/// The machine has no memory left for a tensor.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

namespace detail {
struct Block;
}

class Storage {
 public:
  Storage() = default;
  /// At least `bytes` bytes, from 0 to 2^61. Throws OutOfMemory when the machine has none left even after all free
  /// blocks were returned to it.
  explicit Storage(std::int64_t bytes);
  Storage(const Storage& other) noexcept;
  Storage(Storage&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Storage& operator=(Storage other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Storage();

  explicit operator bool() const { return block_ != nullptr; }
  std::byte* data() const;
  bool shared() const;  ///< another handle holds the block too
  friend bool operator==(const Storage&, const Storage&) = default;

 private:
  detail::Block* block_ = nullptr;
};

namespace storage_pool {

struct Statistics {
  std::int64_t bytes_in_use;    ///< held by live handles
  std::int64_t peak_bytes;      ///< the most ever held, since reset_peak()
  std::int64_t bytes_reserved;  ///< taken from the operating system, free lists included
};
Statistics statistics();
void reset_peak();
/// Gives the free lists back to the operating system; how much is kept from then on is counted anew.
void trim();
/// For tests: every block handed out is filled with this byte first, so that a kernel that reads what it should write
/// shows.
void fill_new_blocks(std::optional<std::uint8_t> pattern);

}  // namespace storage_pool
}  // namespace maki
