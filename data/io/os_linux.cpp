#if defined(__linux__)
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <linux/magic.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <utility>

#include "data/io/os.h"

namespace maki::os {
namespace {

#ifndef MADV_POPULATE_READ
constexpr int MADV_POPULATE_READ = 22;  // Linux 5.14; older kernels answer EINVAL
#endif

// The number after `key` in a file with lines such as "MemAvailable:  123 kB"; without a key, the first word of the
// file. nullopt if it is missing or not a number.
std::optional<std::int64_t> number_in(const std::string& path, const std::string& key = "") {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    if (!key.empty() && word != key) continue;
    if (!key.empty() && !(file >> word)) break;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;  // "max": no limit
    return number;
  }
  return std::nullopt;
}

struct GroupFiles {
  const char *folder, *limit, *usage, *inactive;
};
constexpr GroupFiles kCgroupVersion1{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                     "total_inactive_file"};
constexpr GroupFiles kCgroupVersion2{"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};

// Bytes left under the limits of a control group and of all its ancestors. Inactive page cache counts as free, because
// the kernel reclaims it when memory is short.
std::optional<std::int64_t> left_in_group(const std::string& root, const GroupFiles& files, std::string group) {
  std::optional<std::int64_t> least;
  for (;;) {
    const std::string folder = fmt::format("{}{}{}/", root, files.folder, group);
    const auto limit = number_in(folder + files.limit), usage = number_in(folder + files.usage);
    if (limit && usage) {
      const std::int64_t cached = number_in(folder + "memory.stat", files.inactive).value_or(0);
      const std::int64_t left = std::max<std::int64_t>(0, *limit - *usage + cached);
      least = std::min(left, least.value_or(left));
    }
    if (group.empty() || group == "/") return least;
    group.erase(group.rfind('/'));
  }
}

}  // namespace

int sync(int descriptor) { return ::fsync(descriptor); }
int rename_to_new(const char* from, const char* to) {
  return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
}
int exchange(const char* one, const char* other) { return renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE); }

int load_pages(std::byte* begin, std::size_t size) {
  while (madvise(begin, size, MADV_POPULATE_READ) != 0)
    if (errno != EINTR && errno != EAGAIN) return errno == EFAULT ? EIO : errno;
  return 0;
}

void each_entry(int directory, void (*body)(int directory, const char* name)) {
  alignas(dirent64) char entries[4096];
  for (ssize_t size; (size = getdents64(directory, entries, sizeof entries)) > 0;) {
    for (ssize_t at = 0; at < size;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      const bool itself = std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0;
      if (!itself) body(directory, entry->d_name);
    }
  }
}

// Lines of /proc/locks: "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF". The device is not compared, because some
// file systems show another one there.
bool is_locked(const std::string& path, std::int64_t holder) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return false;
  const std::string inode = fmt::format(":{}", status.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, mode, access, place;
    std::int64_t process = 0;
    words >> number >> kind >> mode >> access >> process >> place;
    if (words && kind == "FLOCK" && access == "WRITE" && process == holder && place.ends_with(inode)) return true;
  }
  return false;
}

std::string file_system_type(int descriptor) {
  struct statfs status = {};
  if (fstatfs(descriptor, &status) != 0) return "unknown";
  const auto type = static_cast<std::uint32_t>(status.f_type);
  static constexpr std::pair<std::uint32_t, const char*> kNames[] = {
      {EXT4_SUPER_MAGIC, "ext4"},
      {XFS_SUPER_MAGIC, "xfs"},
      {BTRFS_SUPER_MAGIC, "btrfs"},
      {TMPFS_MAGIC, "tmpfs"},
      {OVERLAYFS_SUPER_MAGIC, "overlay"},
      {NFS_SUPER_MAGIC, "nfs"},
      {CIFS_SUPER_MAGIC, "cifs"},
      {SMB2_SUPER_MAGIC, "smb"},
      {FUSE_SUPER_MAGIC, "fuse"},
      {V9FS_MAGIC, "9p"},
      {MSDOS_SUPER_MAGIC, "vfat"},
      {EXFAT_SUPER_MAGIC, "exfat"},
      {0x0BD00BD0, "lustre"},
      {0x47504653, "gpfs"},
      {AFS_SUPER_MAGIC, "afs"},
  };
  for (const auto& [magic, name] : kNames) {
    if (type == magic) return name;
  }
  return fmt::format("type {:#x}", type);
}

timespec modified(const struct stat& status) { return status.st_mtim; }

std::string program() {
  std::array<char, PATH_MAX> path = {};
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  return {path.data(), static_cast<std::size_t>(std::max<ssize_t>(0, size))};
}

std::optional<std::int64_t> available_memory(const std::string& root) {
  std::optional<std::int64_t> least = number_in(root + "/proc/meminfo", "MemAvailable:");
  if (least) *least *= 1024;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // A line is "0::/path" in version 2, and "4:memory:/path", among others, in version 1.
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const bool unified = controllers == ",,";
    if (!unified && controllers.find(",memory,") == std::string::npos) continue;
    const auto left = left_in_group(root, unified ? kCgroupVersion2 : kCgroupVersion1, line.substr(second + 1));
    if (left) least = std::min(*left, least.value_or(*left));
  }
  return least;
}

std::int64_t peak_memory() {
  // getrusage() inherits its value from the program that started this one.
  if (const auto kilobytes = number_in("/proc/self/status", "VmHWM:")) return *kilobytes * 1024;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace maki::os
#endif
