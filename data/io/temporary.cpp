#include "data/io/temporary.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <new>
#include <unistd.h>

#include "data/io/os.h"
#include "data/io/system_random.h"

namespace maki {
namespace {

// What a signal removes. The handler may run at any moment, so every slot has its memory for good. A name that finds no
// free slot, or is too long for one, is not removed by signals.
struct Slot {
  enum State : int { free, being_set, set };
  std::atomic<int> state = free;
  char path[PATH_MAX];
};
static_assert(std::atomic<int>::is_always_lock_free);
constexpr std::size_t kSlots = 16;  // more than commands have temporary files and directories at the same time
std::array<Slot, kSlots> slots;

std::size_t occupy_slot(const std::string& path) {
  for (std::size_t i = 0; path.size() < PATH_MAX && i < kSlots; ++i) {
    int expected = Slot::free;
    if (!slots[i].state.compare_exchange_strong(expected, Slot::being_set)) continue;
    std::memcpy(slots[i].path, path.c_str(), path.size() + 1);
    slots[i].state = Slot::set;
    return i;
  }
  return kSlots;
}

// What unlink() answers for a directory: the first on Linux, the second by POSIX.
bool may_be_directory(int error) { return error == EISDIR || error == EPERM; }

// Removes a file, or a directory with all that it contains. Symbolic links are not followed. Returns whether it is
// gone. Allocates no memory for a file.
bool remove_with_contents(FileSystem& fs, const std::string& path) {
  if (fs.unlink(path) == 0 || errno == ENOENT) return true;
  if (!may_be_directory(errno)) return false;
  std::error_code error;
  std::vector<std::string> entries;
  for (std::filesystem::directory_iterator at(path, error), end; !error && at != end; at.increment(error))
    entries.push_back(at->path().string());
  for (const std::string& entry : entries) remove_with_contents(fs, entry);
  return fs.rmdir(path) == 0;
}

// Removes an entry of a directory, with all that it contains, by functions that a signal handler may call.
void remove_tree(int parent, const char* name) {
  if (unlinkat(parent, name, 0) == 0 || !may_be_directory(errno)) return;
  const int directory = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (directory < 0) return;
  os::each_entry(directory, remove_tree);
  close(directory);
  unlinkat(parent, name, AT_REMOVEDIR);
}

void verify(FileSystem& fs, const std::string& path, const std::vector<Bytes>& pieces) {
  Descriptor file(fs, path, O_RDONLY | O_NOFOLLOW);
  constexpr std::size_t kBlockBytes = 1 << 16;  // per read: few calls, little memory
  std::vector<std::byte> buffer(kBlockBytes);
  for (Bytes piece : pieces) {
    while (!piece.empty()) {
      const std::size_t n = std::min(buffer.size(), piece.size());
      const std::size_t got = file.fill(std::span(buffer).first(n));
      require_read_back(got == n && std::memcmp(buffer.data(), piece.data(), n) == 0, path);
      piece = piece.subspan(n);
    }
  }
  check<CheckpointError>(file.fill(std::span(buffer).first(1)) == 0, "{}: is longer than what was written", path);
}

}  // namespace

Temporary::Temporary(FileSystem& fs, std::string path) : fs_(fs), path_(std::move(path)), slot_(occupy_slot(path_)) {}

void Temporary::keep() {
  owned_ = false;
  if (slot_ < kSlots) slots[slot_].state = Slot::free;
  slot_ = kSlots;
}

bool Temporary::remove() {
  if (!owned_) return true;
  bool gone = false;
  try {
    gone = remove_with_contents(fs_, path_);
  } catch (const std::bad_alloc&) {
    remove_tree(AT_FDCWD, path_.c_str());
    gone = access(path_.c_str(), F_OK) != 0;
  }
  keep();
  return gone;
}

Descriptor Temporary::create(const std::string& name_in_errors) {
  const int opened = retry([&] { return fs_.open(path_, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0644); });
  if (opened < 0) {
    const int error = errno;
    keep();
    errno = error;
  }
  return Descriptor(fs_, name_in_errors, Descriptor::Opened{opened});
}

Descriptor Temporary::create_for(const std::string& place) {
  try {
    return create(place);
  } catch (const CheckpointError& error) {
    fail_for(place, error.what());
  }
}

void Temporary::create_directory_for(const std::string& place) {
  if (fs_.mkdir(path_, 0777) == 0) return;
  const int error = errno;
  keep();
  fail<CheckpointError>("{}: cannot be created: {}", place, std::strerror(error));
}

void Temporary::write(const std::vector<Bytes>& pieces) {
  Descriptor file = create(path_);
  for (const Bytes piece : pieces) file.write_all(piece);
  file.sync();
  file.close();
  verify(fs_, path_, pieces);
}

void Temporary::move_to(const std::string& place) {
  // In a statement of its own: arguments are evaluated in no fixed order, and errno must be read after the call.
  const int renamed = fs_.rename(path_, place);
  check<CheckpointError>(renamed == 0, "{}: rename failed: {}", path_, std::strerror(errno));
  keep();
}

void Temporary::move_to_new(const std::string& place) {
  const int renamed = fs_.rename_to_new(path_, place), error = errno;
  check(renamed == 0 || error != EEXIST, "{}: was made by another process meanwhile, and is left as it is", place);
  check<CheckpointError>(renamed == 0, "{}: rename failed: {}", path_, std::strerror(error));
  keep();
}

void Temporary::fail_for(const std::string& place, const char* reason) {
  const bool left = !remove();
  std::error_code ignored;
  const bool before = std::filesystem::exists(place, ignored);
  std::string_view why = reason;
  for (const std::string& name : {path_, place})
    if (why.starts_with(fmt::format("{}: ", name))) why.remove_prefix(name.size() + 2);
  fail<CheckpointError>("{}: could not be written{} ({}){}", place, before ? "; the previous file is intact" : "", why,
                        left ? "; " + path_ + " could not be removed" : "");
}

Parents::Parents(FileSystem& fs, const std::string& place) : fs_(fs) {
  try {
    make_directories(fs_, parent_directory(place), made_);
  } catch (...) {
    remove_empty();
    throw;
  }
}

void Parents::remove_empty() {
  for (auto directory = made_.rbegin(); directory != made_.rend(); ++directory) fs_.rmdir(*directory);
}

void require_read_back(bool same, const std::string& path) {
  check<CheckpointError>(same, "{}: what was read back differs from what was written; the disk may be failing", path);
}

std::string unused_name_beside(const std::string& place) {
  constexpr std::size_t kMaxNameBytes = 200;  // 22 more are added, and file systems limit names to 255
  const std::string name = std::filesystem::path(place).filename().string().substr(0, kMaxNameBytes);
  return fmt::format("{}/.{}.{:016x}.tmp", parent_directory(place), name, system_random());
}

void sync_place(FileSystem& fs, const std::string& place) {
  try {
    sync_directory(fs, parent_directory(place));
  } catch (const CheckpointError& error) {
    fail<CheckpointError>("{}: is complete, but may be lost if the power fails ({})", place, error.what());
  }
}

void remove_temporaries() {
  for (Slot& slot : slots) {
    if (slot.state == Slot::set) remove_tree(AT_FDCWD, slot.path);
  }
}

}  // namespace maki
