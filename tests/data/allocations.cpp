// Replaces operator new and delete by counting ones. In a file of its own, so that no compiler inlines one next to the
// other.
#include "tests/data/allocations.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#if defined(__APPLE__)
#include <malloc/malloc.h>
#else
#include <malloc.h>
#endif

namespace {

std::atomic<std::int64_t> calls{0}, held{0}, most_held{0}, held_before{0};

std::int64_t size_of(void* memory) {
#if defined(__APPLE__)
  return static_cast<std::int64_t>(malloc_size(memory));
#else
  return static_cast<std::int64_t>(malloc_usable_size(memory));
#endif
}

void taken(void* memory) {
  ++calls;
  held += size_of(memory);
  most_held = std::max<std::int64_t>(most_held, held);  // exact only with one thread
}
void returned(void* memory) {
  if (memory != nullptr) held -= size_of(memory);
}

}  // namespace

#ifdef __SANITIZE_THREAD__
// This sanitizer's operators cannot be replaced; it calls these functions instead, also for malloc() itself.
extern "C" void __sanitizer_malloc_hook(const volatile void* memory, std::size_t) { taken(const_cast<void*>(memory)); }
extern "C" void __sanitizer_free_hook(const volatile void* memory) { returned(const_cast<void*>(memory)); }
#else
void* operator new(std::size_t size) {
  void* const memory = std::malloc(std::max<std::size_t>(size, 1));
  if (memory == nullptr) throw std::bad_alloc();
  taken(memory);
  return memory;
}
// Replaced, too: the sanitizers have one of their own, and our delete must not free its memory.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (...) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept {
  returned(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
#endif

namespace maki::tests {

std::int64_t allocations() { return calls; }
void start_peak() {
  held_before = held.load();
  most_held = held.load();
}
std::int64_t peak_bytes() { return most_held - held_before; }
std::int64_t held_bytes() { return held - held_before; }

}  // namespace maki::tests
