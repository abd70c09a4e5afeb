#include "data/text/file_mapping.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/text/error.h"
#include "data/text/git_lfs.h"

namespace maki {
namespace {

struct Descriptor {
  explicit Descriptor(const std::string& path) : number(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}
  ~Descriptor() {
    if (number >= 0) close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number;
};

}  // namespace

FileMapping::FileMapping(const std::string& path) : path_(path) {
  const Descriptor file(path);
  check<CorpusError>(file.number >= 0, "{}: cannot be opened: {}", path, std::strerror(errno));
  struct stat status {};
  const bool known = fstat(file.number, &status) == 0;
  check<CorpusError>(known && S_ISREG(status.st_mode), "{}: is not a regular file", path);
  map(file.number, static_cast<std::size_t>(status.st_size));
}

FileMapping::FileMapping(int descriptor, std::size_t size, const std::string& path) : path_(path) {
  map(descriptor, size);
}

void FileMapping::map(int descriptor, std::size_t size) {
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
