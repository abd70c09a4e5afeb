#include "train/run/section_mapping.h"

#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

namespace maki {
namespace {

#ifndef MADV_POPULATE_READ
constexpr int MADV_POPULATE_READ = 22;  // Linux 5.14; older kernels answer EINVAL
#endif

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

std::shared_ptr<const SectionMapping> SectionMapping::create(int descriptor, std::uint64_t offset,
                                                             std::uint64_t length) {
  const std::size_t before = offset % page_bytes(), size = before + length;
  if (length == 0) return nullptr;
  void* const memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor, static_cast<off_t>(offset - before));
  if (memory == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(memory);
  const std::shared_ptr<const SectionMapping> mapping(
      new SectionMapping(begin, size, std::span(begin + before, length)));
  return mapping->load(0, 1) == 0 ? mapping : nullptr;
}

SectionMapping::~SectionMapping() { munmap(memory_, size_); }

int SectionMapping::load(std::size_t begin, std::size_t end) const {
  const auto page = page_bytes();
  const auto first = static_cast<std::size_t>(bytes_.data() - memory_) + begin;
  const std::size_t start = first / page * page;
  while (madvise(memory_ + start, first - start + (end - begin), MADV_POPULATE_READ) != 0)
    if (errno != EINTR && errno != EAGAIN) return errno == EFAULT ? EIO : errno;
  return 0;
}

}  // namespace maki
