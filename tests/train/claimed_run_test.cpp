// Starts at the same time in one directory: exactly one has it, whenever the others come, and none removes what another
// one uses.
#include <functional>
#include <memory>
#include <unistd.h>

#include "data/io/error.h"
#include "tests/files.h"
#include "train/run/new_run.h"

using namespace maki;
using namespace maki::tests;

namespace {

// The real file system, which calls a function before one of its calls that change or lock something.
struct Interleaved : FileSystem {
  Interleaved(int before_call, std::function<void()> call) : before(before_call), action(std::move(call)) {}
  void count() {
    if (calls++ == before) action();
  }
  int open(const std::string& path, int flags, mode_t mode) override {
    count();
    return FileSystem::open(path, flags, mode);
  }
  int flock(int descriptor, int operation) override {
    count();
    return FileSystem::flock(descriptor, operation);
  }
  int mkdir(const std::string& path, mode_t mode) override {
    count();
    return FileSystem::mkdir(path, mode);
  }
  int unlink(const std::string& path) override {
    count();
    return FileSystem::unlink(path);
  }
  int rmdir(const std::string& path) override {
    count();
    return FileSystem::rmdir(path);
  }

  int before, calls = 0;
  std::function<void()> action;
};

// The claim, or null if the directory belongs to another one.
std::unique_ptr<RunClaim> try_claim(const RunDirectory& run, const std::string& config) {
  try {
    return std::make_unique<RunClaim>(run, config);
  } catch (const OccupiedOutput&) {
    return nullptr;
  }
}

// Requires that the directory can be used by the claim that has it.
void require_usable(const RunDirectory& run) {
  write_bytes(run.config_file(), "");
  write_bytes(run.checkpoint_file(0), "");
  REQUIRE(contains(error_message<OccupiedOutput>([&] { RunLock{run}; }), "is locked by process"));
}

const std::string kConfig = "seed = 1\n";

}  // namespace

TEST_CASE("whether a run is locked is seen without a lock") {
  const TemporaryFolder folder;
  const RunDirectory run(folder.path());
  REQUIRE_FALSE(RunLock::is_held(run));
  {
    const RunLock lock(run);
    REQUIRE(RunLock::is_held(run));
  }
  REQUIRE_FALSE(RunLock::is_held(run));
}

TEST_CASE("whenever a second start claims the directory of a first one, exactly one has it, and can use it") {
  for (const bool exists : {false, true}) {
    for (int before = 0;; ++before) {
      const TemporaryFolder folder;
      const std::string path = folder / "a/run";
      if (exists) std::filesystem::create_directories(path);
      std::unique_ptr<RunClaim> second;
      Interleaved fs(before, [&] { second = try_claim(RunDirectory(path), "seed = 2\n"); });
      const std::unique_ptr<RunClaim> first = try_claim(RunDirectory(path, fs), kConfig);
      INFO("before call " << before);
      if (fs.calls <= before) second = try_claim(RunDirectory(path), "seed = 2\n");
      REQUIRE((first != nullptr) != (second != nullptr));
      require_usable(RunDirectory(path));
      if (fs.calls <= before) break;
      REQUIRE(before < 100);
    }
  }
}

TEST_CASE("a start that fails leaves the directory to another one, whenever that claims it") {
  for (int before = 0;; ++before) {
    const TemporaryFolder folder;
    const RunDirectory run(folder / "a/run");
    std::unique_ptr<RunClaim> second;
    Interleaved fs(-1, [&] { second = try_claim(run, kConfig); });
    RunClaim first(RunDirectory(run.path(), fs), kConfig);
    write_bytes(run.config_file(), kConfig);
    fs.before = fs.calls + before;
    const int calls = fs.calls;
    first.roll_back();
    INFO("before call " << before);
    if (second) require_usable(run);
    if (!second) REQUIRE_FALSE(file_exists(run.path()));
    if (fs.calls <= calls + before) break;
    REQUIRE(before < 100);
  }
}

TEST_CASE("a start goes on if a failed one removes the directories that it had made") {
  for (const char* const existing : {"a/b", "a/b/run"}) {
    for (int before = 0;; ++before) {
      const TemporaryFolder folder;
      std::filesystem::create_directories(folder / existing);
      Interleaved fs(before, [&] {
        for (std::string made = existing; !made.empty(); made = std::filesystem::path(made).parent_path().string())
          rmdir((folder / made).c_str());
      });
      const RunDirectory run(folder / "a/b/run", fs);
      const RunClaim claim(run, kConfig);
      INFO(existing << ", before call " << before);
      require_usable(RunDirectory(run.path()));
      if (fs.calls <= before) break;
      REQUIRE(before < 100);
    }
  }
}
