// A disk that is really full: a tmpfs of a limited number of pages. Wherever that stops the run, it ends with exit code
// 4 and what it had saved is intact. With more space it ends as if there had always been enough.
#if defined(__linux__)
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "tests/catch.h"
#include "tests/files.h"
#include "tests/train/resumable_run.h"
#include "train/run/verified_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr int kSteps = 8;

std::string size_option(long pages) { return fmt::format("size={}", pages * sysconf(_SC_PAGESIZE)); }

// Moves this process into a mount namespace of its own: nobody else sees its mounts, and they end with it.
bool isolate_mounts() {
  static const bool done = unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  return done;
}

// Mounts a file system of the given number of pages during its lifetime.
class SmallDisk {
 public:
  SmallDisk(std::string path, long pages) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
    mounted_ = isolate_mounts() && mount("tmpfs", path_.c_str(), "tmpfs", 0, size_option(pages).c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  void grow(long pages) const {
    REQUIRE(mount("tmpfs", path_.c_str(), nullptr, MS_REMOUNT, size_option(pages).c_str()) == 0);
  }

 private:
  std::string path_;
  bool mounted_ = false;
};

}  // namespace

TEST_CASE(
    "a full disk, wherever it strikes: exit 4, what was saved is intact, and with more space the run ends the same") {
  const TemporaryFolder folder;
  {
    const SmallDisk probe(folder / "probe", 8);
    if (!probe.mounted()) {
      WARN("skipped: this process may not mount a file system (" << std::strerror(errno) << ")");
      return;
    }
  }
  const ResumableRun straight(folder, "straight", kSteps);
  require_ok(straight.go_on());
  const std::string expected = read_text(checkpoint(straight.path, kSteps));
  const long size = static_cast<long>(expected.size()) / sysconf(_SC_PAGESIZE) + 1;
  int full = 0, resumed = 0;
  // From no space for a configuration to almost enough for the whole run, which keeps three checkpoints at once.
  for (long pages = 1; pages < 4 * size; pages += 1 + pages / 8) {
    INFO(pages << " pages; a checkpoint has " << size);
    const std::string disk = folder / fmt::format("disk-{}", pages);
    const SmallDisk small(disk, pages);
    REQUIRE(small.mounted());
    const ResumableRun run(folder, fmt::format("disk-{}/run", pages), kSteps);
    const Finished finished = run.go_on();
    INFO(finished.err);
    REQUIRE((finished.exit_code == 4 || finished.exit_code == 0));
    full += finished.exit_code == 4;
    const bool begun = run.newest() >= 0;  // else nothing of it is left
    resumed += begun;
    REQUIRE(std::filesystem::exists(run.path) == begun);
    if (finished.exit_code == 4) REQUIRE(contains(finished.err, "No space left on device"));
    for (const std::string& file : begun ? run.files() : std::vector<std::string>()) {
      REQUIRE_FALSE(file.ends_with(".tmp"));
      if (file.ends_with(".maki")) VerifiedCheckpoint{run.path + "/" + file};
    }
    const RunDirectory directory(run.path);
    if (directory.last()) REQUIRE(std::filesystem::exists(directory.checkpoint_file(*directory.last())));
    if (directory.best()) REQUIRE(std::filesystem::exists(directory.checkpoint_file(directory.best()->step)));
    small.grow(100 * size);
    require_ok(run.go_on());
    REQUIRE(read_text(checkpoint(run.path, kSteps)) == expected);
    REQUIRE(run.files() == straight.files());
    REQUIRE(read_text(run.path + "/checkpoints/best") == read_text(straight.path + "/checkpoints/best"));
  }
  REQUIRE(full >= 8);
  REQUIRE(resumed >= 3);
}
#endif
