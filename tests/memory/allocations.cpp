// In a file of its own, so that no compiler inlines one function next to its counterpart.
#include "tests/memory/allocations.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <limits>
#include <new>
#include <sys/mman.h>

namespace {

std::atomic<bool> counting = false;
std::atomic<int> news = 0, mallocs = 0, mmaps = 0;
std::atomic<long> living = 0;
constexpr long kNever = std::numeric_limits<long>::max();
std::atomic<long> until_failure = kNever;

void count(std::atomic<int>& calls) {
  if (counting.load(std::memory_order_relaxed)) ++calls;
}
void* counted(void* memory) {
  if (memory != nullptr) ++living;
  return memory;
}

// The parser of toml++ must not throw, and calls std::terminate() instead.
bool must_not_throw() {
  std::array<void*, 64> frames{};
  const int n = backtrace(frames.data(), static_cast<int>(frames.size()));
  return std::any_of(frames.begin(), frames.begin() + n, [](void* frame) {
    Dl_info info{};
    return dladdr(frame, &info) != 0 && std::strstr(info.dli_fname, "libtomlplusplus") != nullptr;
  });
}
bool fails() {
  return until_failure.load(std::memory_order_relaxed) != kNever && until_failure-- == 0 && !must_not_throw();
}

}  // namespace

// glibc's allocator under the names that it exports for interposers.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

void* malloc(std::size_t size) {
  count(mallocs);
  return counted(__libc_malloc(size));
}
void* calloc(std::size_t n, std::size_t size) {
  count(mallocs);
  return counted(__libc_calloc(n, size));
}
void* realloc(void* p, std::size_t size) {
  count(mallocs);
  void* const memory = __libc_realloc(p, size);
  return p == nullptr ? counted(memory) : memory;
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  count(mallocs);
  return fails() ? nullptr : counted(__libc_memalign(alignment, size));
}
void* memalign(std::size_t alignment, std::size_t size) {
  count(mallocs);
  return counted(__libc_memalign(alignment, size));
}
int posix_memalign(void** p, std::size_t alignment, std::size_t size) {
  count(mallocs);
  *p = counted(__libc_memalign(alignment, size));
  return *p == nullptr ? ENOMEM : 0;
}
void free(void* p) {
  if (p != nullptr) --living;
  __libc_free(p);
}
void* mmap(void* address, std::size_t length, int protection, int flags, int descriptor, off_t offset) noexcept {
  count(mmaps);
  using Mmap = void* (*)(void*, std::size_t, int, int, int, off_t);
  static const auto next = reinterpret_cast<Mmap>(dlsym(RTLD_NEXT, "mmap"));
  return next(address, length, protection, flags, descriptor, offset);
}
}

void* operator new(std::size_t size) {
  count(news);
  void* const memory = fails() ? nullptr : counted(__libc_malloc(size == 0 ? 1 : size));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* p) noexcept { free(p); }
void operator delete(void* p, std::size_t) noexcept { free(p); }

namespace maki::tests {

void begin_counting() {
  news = mallocs = mmaps = 0;
  counting = true;
}
Allocations end_counting() {
  counting = false;
  return {news, mallocs, mmaps};
}
long living_allocations() { return living; }
void fail_allocation(long n) { until_failure = n; }
bool has_failed() { return until_failure.exchange(kNever) < 0; }

}  // namespace maki::tests
