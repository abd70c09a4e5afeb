#include "data/io/mapping.h"

#include <algorithm>
#include <sys/mman.h>
#include <unistd.h>

#include "data/io/os.h"

namespace maki {
namespace {

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

std::shared_ptr<const Mapping> Mapping::create(int descriptor, std::uint64_t offset, std::uint64_t length,
                                               Access access) {
  const std::size_t before = offset % page_bytes(), size = before + length;
  if (length == 0) return nullptr;
  const int protection = access == Access::read ? PROT_READ : PROT_READ | PROT_WRITE;
  void* const memory = mmap(nullptr, size, protection, MAP_PRIVATE, descriptor, static_cast<off_t>(offset - before));
  if (memory == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(memory);
  return std::shared_ptr<const Mapping>(new Mapping(begin, size, std::span(begin + before, length)));
}

Mapping::~Mapping() { munmap(memory_, size_); }

int Mapping::load(std::size_t begin, std::size_t end) const {
  const auto page = page_bytes();
  const auto first = static_cast<std::size_t>(bytes_.data() - memory_) + begin;
  const std::size_t start = first / page * page;
  return os::load_pages(memory_ + start, first - start + (end - begin));
}

void Mapping::release(std::size_t end) const {
  const auto before = static_cast<std::size_t>(bytes_.data() - memory_);
  if (end > 0) madvise(memory_, std::min(before + end, size_), MADV_DONTNEED);
}

}  // namespace maki
