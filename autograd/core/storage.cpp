#include "autograd/core/storage.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <sys/mman.h>

#include "autograd/core/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(address, size) static_cast<void>(0)
#endif

namespace maki {

struct detail::Block {
  std::atomic<std::int32_t> references;
  int size_class;
  std::int64_t capacity;  // bytes behind the header
  Block* next;            // in a free list

  std::byte* data() { return reinterpret_cast<std::byte*>(this) + 64; }
};

namespace {

using detail::Block;
static_assert(sizeof(Block) <= 64);

// Sizes are rounded up to eight steps an octave (at most 12.5 % waste): 64, 128, … 512, 576, 640, … 1024, 1152, …
struct SizeClass {
  int index;
  std::int64_t capacity;
};

SizeClass size_class(std::int64_t bytes) {
  const auto wanted = static_cast<std::uint64_t>(bytes < 64 ? 64 : bytes);
  const int octave =
      std::max(9, static_cast<int>(std::bit_width(wanted - 1)));  // wanted is in (2^(octave-1), 2^octave]
  const std::uint64_t step = std::uint64_t{1} << (octave - 4), steps = (wanted + step - 1) / step;
  // 64-byte alignment holds in every class because the smallest step is 32 and odd steps start at 512.
  const std::uint64_t capacity = (steps * step + 63) / 64 * 64;
  return {(octave - 9) * 16 + static_cast<int>(capacity / step) - 1, static_cast<std::int64_t>(capacity)};
}

constexpr std::int64_t kHugePage = 2 << 20;

// Blocks of 4 MiB and more sit on transparent huge pages where the kernel gives them.
Block* allocate(SizeClass size) {
  const bool huge = size.capacity >= 2 * kHugePage;
  const std::int64_t alignment = huge ? kHugePage : 64;
  const auto bytes = static_cast<std::size_t>((size.capacity + 64 + alignment - 1) / alignment * alignment);
  void* memory = std::aligned_alloc(static_cast<std::size_t>(alignment), bytes);
  check<OutOfMemory>(memory != nullptr, "memory: the machine has no {} bytes left; use a smaller model, batch or block",
                     bytes);
  if (huge) madvise(memory, bytes, MADV_HUGEPAGE);
  return new (memory) Block{1, size.index, size.capacity, nullptr};
}

class Pool {
 public:
  Block* take(std::int64_t bytes) {
    const SizeClass size = size_class(bytes);
    Block* block = nullptr;
    {
      const std::lock_guard lock(mutex_);
      Block*& head = free_[static_cast<std::size_t>(size.index)];
      if (head != nullptr) block = std::exchange(head, head->next);
    }
    const bool fresh = block == nullptr;
    if (fresh) block = allocate(size);
    ASAN_UNPOISON_MEMORY_REGION(block->data(), static_cast<std::size_t>(block->capacity));
    block->references.store(1, std::memory_order_relaxed);
    if (fill_) std::memset(block->data(), *fill_, static_cast<std::size_t>(block->capacity));
    const std::lock_guard lock(mutex_);
    if (fresh) reserved_ += block->capacity;
    in_use_ += block->capacity;
    peak_ = std::max(peak_, in_use_);
    return block;
  }

  void give(Block* block) {
#ifndef NDEBUG
    std::memset(block->data(), 0xFF, static_cast<std::size_t>(block->capacity));
#endif
    ASAN_POISON_MEMORY_REGION(block->data(), static_cast<std::size_t>(block->capacity));
    const std::lock_guard lock(mutex_);
    in_use_ -= block->capacity;
    Block*& head = free_[static_cast<std::size_t>(block->size_class)];
    block->next = std::exchange(head, block);
  }

  void trim() {
    const std::lock_guard lock(mutex_);
    for (Block*& head : free_) {
      while (head != nullptr) {
        Block* block = std::exchange(head, head->next);
        reserved_ -= block->capacity;
        ASAN_UNPOISON_MEMORY_REGION(block->data(), static_cast<std::size_t>(block->capacity));
        std::free(block);
      }
    }
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
  std::mutex mutex_;
  std::array<Block*, 16 * 56> free_{};
  std::int64_t in_use_ = 0, peak_ = 0, reserved_ = 0;
  std::optional<std::uint8_t> fill_;
};

// Never destroyed: a handle in another static object may outlive it.
Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

}  // namespace

Storage::Storage(std::int64_t bytes) : block_(pool().take(bytes)) {}
Storage::Storage(const Storage& other) noexcept : block_(other.block_) {
  if (block_ != nullptr) block_->references.fetch_add(1, std::memory_order_relaxed);
}
Storage::~Storage() {
  if (block_ != nullptr && block_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) pool().give(block_);
}
std::byte* Storage::data() const { return block_->data(); }
bool Storage::shared() const { return block_->references.load(std::memory_order_acquire) > 1; }

storage_pool::Statistics storage_pool::statistics() { return pool().statistics(); }
void storage_pool::reset_peak() { pool().reset_peak(); }
void storage_pool::trim() { pool().trim(); }
void storage_pool::fill_new_blocks(std::optional<std::uint8_t> pattern) { pool().fill_new_blocks(pattern); }

}  // namespace maki
