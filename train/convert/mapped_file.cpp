#include "train/convert/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "train/config/error.h"

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

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const Descriptor file(path);
  check<CheckpointError>(file.number >= 0, "{}: cannot be opened: {}", path, std::strerror(errno));
  struct stat status {};
  const bool known = fstat(file.number, &status) == 0;
  check<CheckpointError>(known && S_ISREG(status.st_mode), "{}: is not a regular file", path);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;  // there are no mappings of 0 bytes
  void* const memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  check<CheckpointError>(memory != MAP_FAILED, "{}: cannot be mapped into memory: {}", path, std::strerror(errno));
  bytes_ = {static_cast<const std::byte*>(memory), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace maki
