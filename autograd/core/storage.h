// A Storage is a handle to a reference-counted block of memory from a pool. Freed blocks go to free lists by size, so
// training steps with constant shapes allocate nothing after the first ones. Before the pool requests memory from the
// system, it returns the blocks that have been free for longest, until it holds, with the new block, at most the larger
// of 1.5 · peak_bytes since the last trim() and 8 MiB beyond bytes_in_use: so blocks of old sizes do not pile up when
// shapes keep changing. Dropping a handle alone returns nothing to the system.
//
// Blocks are 64-byte aligned and uninitialised. Debug builds fill freed blocks with 0xFF (a NaN in either precision);
// address-sanitizer builds poison them.
//
// Thread safety: the pool may be used from any thread, and handles of one block may be copied and dropped on different
// threads. One handle, like any object, must not be modified by two threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "autograd/core/check.h"

namespace maki {

/// The system refused the memory for a tensor.
class OutOfMemoryError : public Error {
 public:
  using Error::Error;
};

namespace detail {
struct Block;
}

class Storage {
 public:
  Storage() = default;
  /// Allocates a block of at least `bytes` bytes. Throws Error unless 0 <= bytes <= 2^61, and OutOfMemoryError if the
  /// system refuses the memory even after all free blocks were returned to it.
  explicit Storage(std::int64_t bytes);
  /// A block over memory that exists already, such as a mapped file. It is not part of the pool: `owner` is kept until
  /// the last handle is gone, and statistics do not count it. Throws Error unless `memory` is aligned to 64 bytes.
  Storage(std::byte* memory, std::shared_ptr<const void> owner);
  /// A block of zeros beside the pool, which takes memory page by page as it is first written. Throws what
  /// Storage(bytes) throws.
  static Storage of_zero_pages(std::int64_t bytes);
  Storage(const Storage& other) noexcept;
  Storage(Storage&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Storage& operator=(Storage other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Storage();

  explicit operator bool() const { return block_ != nullptr; }
  /// Start of the block, valid as long as any handle holds it. Requires: the handle is not empty.
  std::byte* data() const;
  /// Whether another handle refers to the block as well. Requires: the handle is not empty.
  bool shared() const;
  /// Returns the whole pages in bytes [begin, end) to the system; they are zeros then. Requires: of_zero_pages() made
  /// this block.
  void drop_pages(std::int64_t begin, std::int64_t end);
  /// Whether both refer to the same block.
  friend bool operator==(const Storage&, const Storage&) = default;

 private:
  detail::Block* block_ = nullptr;
};

namespace storage_pool {

/// Sizes are those of blocks after rounding up: by at most 12.5 %, or to a multiple of 64 bytes up to 512 bytes.
/// Headers of blocks are not counted.
struct Statistics {
  std::int64_t bytes_in_use;    ///< held by live handles
  std::int64_t peak_bytes;      ///< maximum of bytes_in_use since reset_peak()
  std::int64_t bytes_reserved;  ///< taken from the operating system, free lists included
};
Statistics statistics();
void reset_peak();
/// Returns all free blocks to the operating system and restarts the peak that limits how much is kept.
void trim();
/// For tests: fills every block with this byte before handing it out, which exposes kernels that read uninitialised
/// output. nullopt turns it off. Thread safety: no other thread may allocate blocks at the same time.
void fill_new_blocks(std::optional<std::uint8_t> pattern);

}  // namespace storage_pool
}  // namespace maki
