#if defined(__APPLE__)
#include "data/io/os.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <mach-o/dyld.h>
#include <mach/mach.h>
#include <sys/attr.h>
#include <sys/mount.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <unistd.h>

namespace maki::os {

// fsync() leaves what was written in the memory of the disk. Network disks, and those of other systems, may have only
// fsync().
int sync(int descriptor) {
  if (fcntl(descriptor, F_FULLFSYNC) == 0) return 0;
  return errno == ENOTSUP || errno == EINVAL || errno == ENOTTY ? ::fsync(descriptor) : -1;
}

int rename_to_new(const char* from, const char* to) {
  const int status = renamex_np(from, to, RENAME_EXCL);
  if (status != 0 && errno == ENOTSUP) errno = EINVAL;
  return status;
}
int exchange(const char* one, const char* other) { return renamex_np(one, other, RENAME_SWAP); }

int load_pages(std::byte* /*begin*/, std::size_t /*size*/) { return EINVAL; }

void each_entry(int directory, void (*body)(int directory, const char* name)) {
  attrlist wanted = {};
  wanted.bitmapcount = ATTR_BIT_MAP_COUNT;
  wanted.commonattr = ATTR_CMN_RETURNED_ATTRS | ATTR_CMN_NAME;
  // What is removed meanwhile can hide other entries: a pass after the last one that found fewer.
  for (int before = INT_MAX, seen = 0;; before = seen) {
    seen = 0;
    lseek(directory, 0, SEEK_SET);
    alignas(std::uint64_t) std::array<char, 4096> entries;
    for (int count; (count = getattrlistbulk(directory, &wanted, entries.data(), entries.size(), 0)) > 0;) {
      seen += count;
      // An entry: its length, the attributes that it has, and where its name is, counted from this field.
      for (const char* at = entries.data(); count > 0; --count) {
        std::uint32_t length = 0;
        std::memcpy(&length, at, sizeof length);
        const char* const field = at + sizeof length + sizeof(attribute_set_t);
        attrreference_t name = {};
        std::memcpy(&name, field, sizeof name);
        body(directory, field + name.attr_dataoffset);
        at += length;
      }
    }
    if (seen == 0 || seen >= before) return;
  }
}

// A lock of flock() is in the way of one of fcntl() here, which does not say who holds it.
bool is_locked(const std::string& path, std::int64_t /*holder*/) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return false;
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool locked = fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  ::close(file);
  return locked;
}

std::string file_system_type(int descriptor) {
  struct statfs status = {};
  return fstatfs(descriptor, &status) == 0 ? status.f_fstypename : "unknown";
}

timespec modified(const struct stat& status) { return status.st_mtimespec; }

std::string program() {
  std::array<char, PATH_MAX> path = {};
  std::uint32_t size = path.size();
  return _NSGetExecutablePath(path.data(), &size) == 0 ? path.data() : "";
}

std::optional<std::int64_t> available_memory(const std::string& /*root*/) {
  vm_statistics64_data_t pages = {};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  const mach_port_t host = mach_host_self();
  const bool known =
      host_statistics64(host, HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages), &count) == KERN_SUCCESS;
  mach_port_deallocate(mach_task_self(), host);
  if (!known) return std::nullopt;
  const auto free = std::int64_t{pages.free_count} + pages.inactive_count + pages.purgeable_count;
  return free * static_cast<std::int64_t>(vm_kernel_page_size);
}

std::int64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;  // bytes here
}

}  // namespace maki::os
#endif
