#include "data/io/file_mapping.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

#include "data/io/error.h"
#include "data/io/git_lfs.h"

namespace maki {
FileMapping::FileMapping(int descriptor, std::size_t size, const std::string& path) : path_(path) {
  if (size == 0) return;  // there are no mappings of 0 bytes
  void* const memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  check<CorpusError>(memory != MAP_FAILED, "{}: cannot be mapped into memory: {}", path_, std::strerror(errno));
  bytes_ = {static_cast<const std::byte*>(memory), size};
  try {
    refuse_git_lfs_pointer<CorpusError>(bytes_, path_);
  } catch (...) {
    munmap(memory, size);
    throw;
  }
}

FileMapping::~FileMapping() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void FileMapping::release(std::size_t end) const {
  if (end > 0 && !bytes_.empty())
    madvise(const_cast<std::byte*>(bytes_.data()), std::min(end, bytes_.size()), MADV_DONTNEED);
}

}  // namespace maki
