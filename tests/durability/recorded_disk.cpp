#include "tests/durability/recorded_disk.h"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <random>
#include <set>
#include <stdexcept>
#include <unistd.h>

#include "tests/files.h"

namespace maki::tests {
namespace {

constexpr std::size_t kSectorBytes = 512;

void add(const Disk& disk, int file, const std::string& path, Tree& tree) {
  const DiskFile& each = disk[static_cast<std::size_t>(file)];
  tree[each.is_directory ? path + "/" : path] = each.bytes;
  for (const auto& [name, entry] : each.entries)
    add(disk, entry, path.empty() ? name : fmt::format("{}/{}", path, name), tree);
}

int scan(const std::string& path, Disk& disk) {
  const auto number = static_cast<int>(disk.size());
  disk.emplace_back();
  if (!std::filesystem::is_directory(path)) {
    disk.back().bytes = std::make_shared<const std::string>(read_bytes(path));
    return number;
  }
  disk.back().is_directory = true;
  for (const std::string& name : file_names(path)) {
    const int entry = scan(fmt::format("{}/{}", path, name), disk);
    disk[static_cast<std::size_t>(number)].entries[name] = entry;
  }
  return number;
}

void put(std::string& bytes, std::uint64_t offset, std::string_view piece) {
  bytes.resize(std::max(bytes.size(), static_cast<std::size_t>(offset) + piece.size()));
  bytes.replace(static_cast<std::size_t>(offset), piece.size(), piece);
}

}  // namespace

Tree tree_of(const Disk& disk) {
  Tree tree;
  add(disk, 0, "", tree);
  return tree;
}

Tree subtree(const Tree& tree, const std::string& path) {
  Tree part;
  for (auto at = tree.lower_bound(path); at != tree.end() && at->first.starts_with(path); ++at) {
    const std::string below = at->first.substr(path.size());
    if (below.empty() || below.starts_with('/')) part.emplace(below, at->second);
  }
  return part;
}

bool same(const Tree& one, const Tree& other) {
  return std::ranges::equal(one, other, [](const auto& a, const auto& b) {
    return a.first == b.first && (a.second == b.second || *a.second == *b.second);
  });
}

void carry_out(const DiskCall& call, Disk& disk) {
  for (const Binding& binding : call.bindings) {
    auto& entries = disk[static_cast<std::size_t>(binding.directory)].entries;
    if (binding.file < 0) {
      entries.erase(binding.name);
    } else {
      entries[binding.name] = binding.file;
    }
  }
  if (call.kind != DiskCall::Kind::write) return;
  auto& bytes = disk[static_cast<std::size_t>(call.file)].bytes;
  std::string changed = *bytes;
  put(changed, call.offset, call.bytes);
  bytes = std::make_shared<const std::string>(std::move(changed));
}

RecordedDisk::RecordedDisk(std::string root) : root_(std::move(root)) {
  scan(root_, before_);
  now_ = before_;
}

void RecordedDisk::acknowledge() { record({DiskCall::Kind::acknowledge, "acknowledge"}); }

bool RecordedDisk::is_dead(bool may_throw) {
  if (!dead_ && calls_.size() < dies_after_) return false;
  errno = EIO;
  if (!std::exchange(dead_, true) && may_throw) throw Crash{};
  return true;
}

// Names like .model.gguf.0123456789abcdef.tmp (unused_name_beside()).
std::string RecordedDisk::numbered(const std::string& part) {
  constexpr std::size_t kEnd = 4, kDrawn = 16;
  if (!part.starts_with('.') || !part.ends_with(".tmp") || part.size() < kEnd + kDrawn + 2) return part;
  const std::string begin = part.substr(0, part.size() - kEnd - kDrawn);
  return numbered_.try_emplace(part, fmt::format("{}#{}.tmp", begin, numbered_.size() + 1)).first->second;
}

RecordedDisk::Place RecordedDisk::find(const std::string& path) {
  const std::filesystem::path relative = std::filesystem::absolute(path).lexically_normal().lexically_relative(root_);
  if (relative.empty() || *relative.begin() == "..") return {};
  Place place{.directory = 0, .name = ".", .file = 0};
  for (const auto& part : relative) {
    if (part.empty() || part == ".") continue;
    if (place.file < 0) return {};  // there is no such directory
    place.directory = place.file;
    place.name = part.string();
    const auto& entries = now_[static_cast<std::size_t>(place.directory)].entries;
    const auto entry = entries.find(place.name);
    place.file = entry == entries.end() ? -1 : entry->second;
    place.words += "/" + numbered(place.name);
  }
  return place;
}

void RecordedDisk::record(DiskCall call) {
  carry_out(call, now_);
  calls_.push_back(std::move(call));
}

int RecordedDisk::bind(int status, DiskCall::Change change, const std::string& words,
                       const std::vector<Binding>& bindings) {
  if (status == 0 && bindings.front().directory >= 0)
    record({.kind = DiskCall::Kind::bind, .words = words, .bindings = bindings, .change = change});
  return status;
}

int RecordedDisk::open(const std::string& path, int flags, mode_t mode) {
  if (is_dead(true)) return -1;
  const Place place = find(path);
  const int descriptor = FileSystem::open(path, flags, mode);
  if (descriptor < 0 || place.directory < 0) return descriptor;
  if (flags & O_TRUNC) throw std::logic_error("O_TRUNC is not modelled");
  int file = place.file;
  if (file < 0) {
    if (place.name != ".lock") acknowledge();
    file = static_cast<int>(now_.size());
    for (Disk* disk : {&before_, &now_}) disk->emplace_back();
    bind(0, DiskCall::Change::made, "create " + place.words, {{place.directory, place.name, file}});
  }
  open_[descriptor] = file;
  return descriptor;
}

void RecordedDisk::written(int descriptor, const void* bytes, ssize_t size, off_t offset) {
  const auto file = open_.find(descriptor);
  if (size <= 0 || file == open_.end()) return;
  record({.kind = DiskCall::Kind::write,
          .words = fmt::format("write to file {}", file->second),
          .file = file->second,
          .offset = static_cast<std::uint64_t>(offset),
          .bytes = std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(size))});
}

ssize_t RecordedDisk::write(int descriptor, const void* bytes, std::size_t size) {
  if (is_dead(true)) return -1;
  const ssize_t n = FileSystem::write(descriptor, bytes, size);
  written(descriptor, bytes, n, lseek(descriptor, 0, SEEK_CUR) - n);
  return n;
}

ssize_t RecordedDisk::pwrite(int descriptor, const void* bytes, std::size_t size, off_t offset) {
  if (is_dead(true)) return -1;
  const ssize_t n = FileSystem::pwrite(descriptor, bytes, size, offset);
  written(descriptor, bytes, n, offset);
  return n;
}

int RecordedDisk::fsync(int descriptor) {
  if (is_dead(true)) return -1;
  if (const auto file = open_.find(descriptor); file != open_.end())
    record(
        {.kind = DiskCall::Kind::sync, .words = fmt::format("fsync of file {}", file->second), .file = file->second});
  return 0;
}

int RecordedDisk::close(int descriptor) {
  open_.erase(descriptor);
  return FileSystem::close(descriptor);
}

int RecordedDisk::moved(int status, const std::string& from, const std::string& to) {
  const Place old = find(from), place = find(to);
  return bind(status, DiskCall::Change::moved, "rename " + old.words + " to " + place.words,
              {{old.directory, old.name, -1}, {place.directory, place.name, old.file}});
}

int RecordedDisk::rename(const std::string& from, const std::string& to) {
  if (is_dead(true)) return -1;
  return moved(FileSystem::rename(from, to), from, to);
}

int RecordedDisk::rename_to_new(const std::string& from, const std::string& to) {
  if (is_dead(true)) return -1;
  return moved(FileSystem::rename_to_new(from, to), from, to);
}

int RecordedDisk::exchange(const std::string& one, const std::string& other) {
  if (is_dead(true)) return -1;
  const Place a = find(one), b = find(other);
  return bind(FileSystem::exchange(one, other), DiskCall::Change::moved, "exchange " + a.words + " and " + b.words,
              {{a.directory, a.name, b.file}, {b.directory, b.name, a.file}});
}

int RecordedDisk::unlink(const std::string& path) {
  if (is_dead(false)) return -1;  // a destructor may make this call
  const Place place = find(path);
  return bind(FileSystem::unlink(path), DiskCall::Change::removed, "unlink " + place.words,
              {{place.directory, place.name, -1}});
}

int RecordedDisk::rmdir(const std::string& path) {
  if (is_dead(false)) return -1;  // a destructor may make this call
  const Place place = find(path);
  return bind(FileSystem::rmdir(path), DiskCall::Change::removed, "rmdir " + place.words,
              {{place.directory, place.name, -1}});
}

int RecordedDisk::mkdir(const std::string& path, mode_t mode) {
  if (is_dead(true)) return -1;
  const Place place = find(path);
  const int status = FileSystem::mkdir(path, mode);
  if (status != 0 || place.directory < 0) return status;
  const auto file = static_cast<int>(now_.size());
  for (Disk* disk : {&before_, &now_}) disk->push_back({.is_directory = true});
  return bind(status, DiskCall::Change::made, "mkdir " + place.words, {{place.directory, place.name, file}});
}

PowerFailures::PowerFailures(Disk before, std::vector<DiskCall> calls)
    : calls_(std::move(calls)), durable_from_(calls_.size(), SIZE_MAX), before_(std::move(before)) {
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    std::set<int> waits_for;
    for (const Binding& binding : calls_[i].bindings) waits_for.insert(binding.directory);
    if (calls_[i].kind == DiskCall::Kind::write) waits_for.insert(calls_[i].file);
    for (std::size_t j = i + 1; j < calls_.size() && !waits_for.empty(); ++j) {
      if (calls_[j].kind == DiskCall::Kind::sync && waits_for.erase(calls_[j].file) > 0 && waits_for.empty())
        durable_from_[i] = j + 1;
    }
  }
}

void PowerFailures::advance(std::size_t calls) {
  if (at_ == calls) return;
  at_ = calls;
  durable_ = before_;
  later_.clear();
  pending_ = 0;
  unsynced_.clear();
  for (std::size_t i = 0; i < calls; ++i) {
    const bool durable = durable_from_[i] <= calls, binds = calls_[i].kind == DiskCall::Kind::bind;
    if (binds && (!durable || pending_ > 0)) {
      later_.push_back(i);
      pending_ += !durable;
    } else if (durable) {
      carry_out(calls_[i], durable_);
    } else if (calls_[i].kind == DiskCall::Kind::write) {
      unsynced_[calls_[i].file].push_back(i);
    }
  }
}

namespace {

// What becomes of what was written to a file and not synced.
enum Fate : std::uint8_t { lost, kept, zeros, torn, garbage };
constexpr std::uint64_t kFates = 5;

// `old` and `now` are its bytes before and after. Torn: the first sectors were written, and the file may end there.
std::string left_of(const std::string& old, const std::string& now, Fate fate, std::uint64_t seed) {
  if (fate == lost) return old;
  if (fate == kept) return now;
  std::string left = old;
  left.resize(now.size(), '\0');
  std::minstd_rand random(static_cast<std::minstd_rand::result_type>(seed));
  const std::size_t sectors = (now.size() + kSectorBytes - 1) / kSectorBytes;
  const std::size_t written = fate == torn ? random() % (sectors + 1) : 0;
  for (std::size_t sector = 0; sector < sectors; ++sector) {
    const bool is_written = sector < written || (fate == garbage && random() % 1024 < 512);
    for (std::size_t i = sector * kSectorBytes; i < std::min((sector + 1) * kSectorBytes, now.size()); ++i) {
      if (is_written) {
        left[i] = now[i];
      } else if (fate == garbage && (i >= old.size() || old[i] != now[i])) {
        left[i] = static_cast<char>(random() >> 16);
      }
    }
  }
  if (fate == torn && random() % 1024 < 512) left.resize(std::clamp(written * kSectorBytes, old.size(), now.size()));
  return left;
}

}  // namespace

std::uint64_t PowerFailures::combinations(std::size_t calls) {
  advance(calls);
  std::uint64_t all = 1;
  for (std::size_t i = 0; i < pending_; ++i) all *= 2;
  for (std::size_t i = 0; i < unsynced_.size(); ++i) all *= kFates;
  if (pending_ + 3 * unsynced_.size() > 62) throw std::logic_error("too many calls are not durable");
  return all;
}

bool PowerFailures::is_drawn(std::size_t calls) {
  advance(calls);
  return !unsynced_.empty();
}

Tree PowerFailures::after(std::size_t calls, std::uint64_t combination, std::uint64_t seed) {
  advance(calls);
  Disk disk = durable_;
  for (const std::size_t call : later_) {
    const bool durable = durable_from_[call] <= calls;
    if (durable || combination % 2 == 1) carry_out(calls_[call], disk);
    if (!durable) combination /= 2;
  }
  for (const auto& [file, writes] : unsynced_) {
    auto& bytes = disk[static_cast<std::size_t>(file)].bytes;
    const auto fate = static_cast<Fate>(combination % kFates);
    combination /= kFates;
    std::string now = *bytes;
    for (const std::size_t call : writes) put(now, calls_[call].offset, calls_[call].bytes);
    bytes = std::make_shared<const std::string>(left_of(*bytes, now, fate, seed + static_cast<std::uint64_t>(file)));
  }
  return tree_of(disk);
}

}  // namespace maki::tests
