#include "autograd/core/storage.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

#include "autograd/core/check.h"

#if defined(__SANITIZE_ADDRESS__)  // a macro of GCC; for Clang, cmake/MakiTargets.cmake defines it
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(address, size) static_cast<void>(0)
#endif

namespace maki {

struct detail::Block {
  std::atomic<std::int32_t> references{1};
  int size_class = 0;
  std::int64_t capacity = 0;  // bytes at `memory`
  std::byte* memory = nullptr;
  Block *newer = nullptr, *older = nullptr;              // neighbours in the list of all free blocks
  Block *newer_alike = nullptr, *older_alike = nullptr;  // neighbours in the list of free blocks of the same size
};

namespace {

using detail::Block;

// Memory that does not belong to the pool.
struct ForeignBlock : Block {
  std::shared_ptr<const void> owner;
};
constexpr int kForeign = -1;  // the size_class of a ForeignBlock

// Sizes are rounded up to a multiple of 64 bytes up to 512 bytes, and beyond to one of eight size classes per power of
// two, which wastes at most 12.5 %: 64, 128, … 512, 576, 640, … 1024, 1152, …
//
// An octave is the sizes in (2^(o - 1), 2^o], divided into steps of 2^(o - 4); octave kFirstOctave also has all smaller
// sizes. An index is 16 · (octave - kFirstOctave) + steps - 1. Beyond the first octave, only steps 9 to 16 occur.
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 61;  // of a block; no tensor is larger (Shape::kMaxElements)
constexpr int kFirstOctave = 9, kLastOctave = 61, kSizeClasses = 16 * (kLastOctave - kFirstOctave + 1);
static_assert(kMaxBytes == std::int64_t{1} << kLastOctave);
struct SizeClass {
  int index;
  std::int64_t capacity;
};

SizeClass size_class(std::int64_t bytes) {
  const auto wanted = static_cast<std::uint64_t>(bytes < 64 ? 64 : bytes);
  const int octave =
      std::max(kFirstOctave, static_cast<int>(std::bit_width(wanted - 1)));  // wanted is in (2^(octave-1), 2^octave]
  const std::uint64_t step = std::uint64_t{1} << (octave - 4), steps = (wanted + step - 1) / step;
  // aligned_alloc() requires a multiple of 64, which the smallest step, 32, does not ensure.
  const std::uint64_t capacity = (steps * step + 63) / 64 * 64;
  return {(octave - kFirstOctave) * 16 + static_cast<int>(capacity / step) - 1, static_cast<std::int64_t>(capacity)};
}

constexpr std::size_t kHeaderBytes = 64;         // a cache line, so that the data behind it is aligned to one
constexpr std::size_t kHugePageBytes = 2 << 20;  // of x86-64, and of arm64 with pages of 4 KiB
static_assert(sizeof(Block) <= kHeaderBytes);

// Blocks of 4 MiB and more begin at a huge-page boundary; huge pages for smaller ones made no measurable difference
// (docs/performance-diary.md). The header of a large block is allocated separately: in front of the data, it would make
// the block extend into one more page.
bool is_large(std::int64_t capacity) { return capacity >= static_cast<std::int64_t>(2 * kHugePageBytes); }

// Maps memory at a huge-page boundary, backed by transparent huge pages if the operating system provides them. Null if
// the system refuses. The part of the last huge page beyond `bytes` is not mapped.
std::byte* map_huge(std::size_t bytes) {
  void* const whole = mmap(nullptr, bytes + kHugePageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (whole == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(whole);
  const std::size_t before =
      (kHugePageBytes - reinterpret_cast<std::uintptr_t>(whole) % kHugePageBytes) % kHugePageBytes;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + bytes, kHugePageBytes - before);
#ifdef MADV_HUGEPAGE
  madvise(begin + before, bytes, MADV_HUGEPAGE);
#endif
  return begin + before;
}

// Null if the system refuses the memory.
Block* allocate(SizeClass size) {
  const auto bytes = static_cast<std::size_t>(size.capacity);
  Block* block = nullptr;
  if (!is_large(size.capacity)) {
    void* const memory = std::aligned_alloc(64, kHeaderBytes + bytes);
    if (memory == nullptr) return nullptr;
    block = new (memory) Block;
    block->memory = static_cast<std::byte*>(memory) + kHeaderBytes;
  } else {
    block = new (std::nothrow) Block;
    if (block == nullptr) return nullptr;
    block->memory = map_huge(bytes);
    if (block->memory == nullptr) {
      delete block;
      return nullptr;
    }
  }
  block->size_class = size.index;
  block->capacity = size.capacity;
  return block;
}

void release(Block* block) {
  ASAN_UNPOISON_MEMORY_REGION(block->memory, static_cast<std::size_t>(block->capacity));
  if (is_large(block->capacity)) {
    munmap(block->memory, static_cast<std::size_t>(block->capacity));
    delete block;
  } else {
    std::free(block);
  }
}

// An intrusive doubly linked list of free blocks, in the order in which they were freed.
template <Block* Block::*kNewer, Block* Block::*kOlder>
class FreeList {
 public:
  Block* newest() const { return newest_; }
  Block* oldest() const { return oldest_; }
  void push(Block* block) {
    block->*kNewer = nullptr;
    block->*kOlder = newest_;
    (newest_ == nullptr ? oldest_ : newest_->*kNewer) = block;
    newest_ = block;
  }
  void remove(Block* block) {
    (block->*kNewer == nullptr ? newest_ : block->*kNewer->*kOlder) = block->*kOlder;
    (block->*kOlder == nullptr ? oldest_ : block->*kOlder->*kNewer) = block->*kNewer;
  }

 private:
  Block *newest_ = nullptr, *oldest_ = nullptr;
};

// Free blocks are kept for requests of the same size. If shapes change from step to step, blocks of sizes that are
// never requested again would accumulate. Before the pool takes memory from the system, it therefore returns the blocks
// that have been free for longest, until it holds at most 1.5 times the memory that was ever in use at once (since the
// last trim()) or, if that is more, kAlwaysKeptBytes beyond what is in use.
//
// Thread safety: one mutex protects everything but fill_.
class Pool {
 public:
  Block* take(std::int64_t bytes) {
    check(bytes >= 0 && bytes <= kMaxBytes, "memory: a block must have 0 to {} bytes; got {}", kMaxBytes, bytes);
    Block* const block = take(size_class(bytes));
    ASAN_UNPOISON_MEMORY_REGION(block->memory, static_cast<std::size_t>(block->capacity));
    block->references.store(1, std::memory_order_relaxed);
    if (fill_) std::memset(block->memory, *fill_, static_cast<std::size_t>(block->capacity));
    return block;
  }

  void give(Block* block) {
#ifndef NDEBUG
    std::memset(block->memory, 0xFF, static_cast<std::size_t>(block->capacity));
#endif
    ASAN_POISON_MEMORY_REGION(block->memory, static_cast<std::size_t>(block->capacity));
    const std::lock_guard lock(mutex_);
    in_use_ -= block->capacity;
    free_.push(block);
    of_size(block->size_class).push(block);
  }

  void trim() {
    const std::lock_guard lock(mutex_);
    release_to(0);
    high_water_ = in_use_;
  }

  storage_pool::Statistics statistics() {
    const std::lock_guard lock(mutex_);
    return {in_use_, peak_, reserved_};
  }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    peak_ = in_use_;
  }
  void fill_new_blocks(std::optional<std::uint8_t> pattern) { fill_ = pattern; }

 private:
  static constexpr std::int64_t kAlwaysKeptBytes = 8 << 20;  // of free blocks: saves small programs system calls
  using SameSize = FreeList<&Block::newer_alike, &Block::older_alike>;

  SameSize& of_size(int index) { return by_size_[static_cast<std::size_t>(index)]; }

  Block* take(SizeClass size) {
    const std::lock_guard lock(mutex_);
    // The block freed last is the most likely to be in a cache.
    Block* block = of_size(size.index).newest();
    if (block != nullptr) {
      unlist(block);
    } else {
      block = reserve(size);
    }
    in_use_ += block->capacity;
    peak_ = std::max(peak_, in_use_);
    high_water_ = std::max(high_water_, in_use_);
    return block;
  }

  // A new block from the system. Requires: mutex_ is locked.
  Block* reserve(SizeClass size) {
    const std::int64_t in_use = in_use_ + size.capacity, high_water = std::max(high_water_, in_use);
    release_to(std::max(high_water + high_water / 2, in_use + kAlwaysKeptBytes) - size.capacity);
    Block* block = allocate(size);
    if (block == nullptr) {
      release_to(0);
      block = allocate(size);
    }
    check<OutOfMemoryError>(block != nullptr, "memory: a tensor needs {} bytes, which the system refused",
                            size.capacity);
    reserved_ += size.capacity;
    return block;
  }

  // Returns the blocks that have been free for longest to the system until at most `most` bytes are reserved, or none
  // is free.
  void release_to(std::int64_t most) {
    while (reserved_ > most && free_.oldest() != nullptr) {
      Block* const block = free_.oldest();
      unlist(block);
      reserved_ -= block->capacity;
      release(block);
    }
  }

  void unlist(Block* block) {
    free_.remove(block);
    of_size(block->size_class).remove(block);
  }

  std::mutex mutex_;
  FreeList<&Block::newer, &Block::older> free_;
  std::array<SameSize, kSizeClasses> by_size_{};
  std::int64_t in_use_ = 0, reserved_ = 0;  // in bytes after rounding up, without headers
  std::int64_t peak_ = 0;                   // since reset_peak()
  std::int64_t high_water_ = 0;             // since trim()
  std::optional<std::uint8_t> fill_;
};

// Never destroyed, because handles in other static objects may be destroyed later.
Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

constexpr int kZeroPages = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

}  // namespace

Storage::Storage(std::int64_t bytes) : block_(pool().take(bytes)) {}
Storage::Storage(std::byte* memory, std::shared_ptr<const void> owner) {
  check(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0, "memory: a block must be aligned to 64 bytes");
  auto* const block = new ForeignBlock;
  block->size_class = kForeign;
  block->memory = memory;
  block->owner = std::move(owner);
  block_ = block;
}
Storage Storage::of_zero_pages(std::int64_t bytes) {
  check(bytes >= 0 && bytes <= kMaxBytes, "memory: a block must have 0 to {} bytes; got {}", kMaxBytes, bytes);
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  void* const pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, kZeroPages, -1, 0);
  check<OutOfMemoryError>(pages != MAP_FAILED, "memory: a tensor needs {} bytes, which the system refused", bytes);
  const std::shared_ptr<const void> owner(pages, [size](void* begin) { munmap(begin, size); });
  return Storage(static_cast<std::byte*>(pages), owner);
}
Storage::Storage(const Storage& other) noexcept : block_(other.block_) {
  if (block_ != nullptr) block_->references.fetch_add(1, std::memory_order_relaxed);
}
Storage::~Storage() {
  if (block_ == nullptr || block_->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (block_->size_class == kForeign) {
    delete static_cast<ForeignBlock*>(block_);
  } else {
    pool().give(block_);
  }
}
std::byte* Storage::data() const { return block_->memory; }
void Storage::drop_pages(std::int64_t begin, std::int64_t end) {
  const std::int64_t page = sysconf(_SC_PAGESIZE), first = (begin + page - 1) / page * page, last = end / page * page;
  if (first >= last) return;
#if defined(__linux__)
  madvise(data() + first, static_cast<std::size_t>(last - first), MADV_DONTNEED);
#else
  // Elsewhere advice leaves it open whether the pages are zeros then.
  mmap(data() + first, static_cast<std::size_t>(last - first), PROT_READ | PROT_WRITE, kZeroPages | MAP_FIXED, -1, 0);
#endif
}
bool Storage::shared() const { return block_->references.load(std::memory_order_acquire) > 1; }

storage_pool::Statistics storage_pool::statistics() { return pool().statistics(); }
void storage_pool::reset_peak() { pool().reset_peak(); }
void storage_pool::trim() { pool().trim(); }
void storage_pool::fill_new_blocks(std::optional<std::uint8_t> pattern) { pool().fill_new_blocks(pattern); }

}  // namespace maki
