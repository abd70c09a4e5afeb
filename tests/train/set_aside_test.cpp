// Going back to an earlier checkpoint: wherever it is interrupted, `last` names a checkpoint that exists, and
// completing it leaves none of the abandoned future.
#include "train/run/set_aside.h"

#include <algorithm>
#include <cerrno>

#include "data/io/error.h"
#include "tests/catch.h"
#include "tests/files.h"

using namespace maki;
using namespace maki::tests;

namespace {

struct Killed {};

// The real file system, whose call of this number, among those that change something, does not happen any more.
class Ending final : public FileSystem {
 public:
  explicit Ending(int last) : left_(last) {}
  int rename(const std::string& from, const std::string& to) override {
    count("rename " + std::filesystem::path(to).filename().string());
    return FileSystem::rename(from, to);
  }
  int mkdir(const std::string& path, mode_t mode) override {
    count("mkdir " + std::filesystem::path(path).filename().string());
    return FileSystem::mkdir(path, mode);
  }
  int open(const std::string& path, int flags, mode_t mode) override {
    opened = path;
    return FileSystem::open(path, flags, mode);
  }
  int fsync(int descriptor) override {
    count("fsync " + std::filesystem::path(opened).filename().string());
    return FileSystem::fsync(descriptor);
  }

  std::string opened;
  std::vector<std::string> calls;

 private:
  void count(const std::string& call) {
    if (left_-- == 0) throw Killed();
    calls.push_back(call);
  }
  int left_;
};

// The real file system, but with the checkpoints of a run on a disk of their own.
class TwoDisks final : public FileSystem {
 public:
  int open(const std::string& path, int flags, mode_t mode) override {
    const int opened = FileSystem::open(path, flags, mode);
    if (path.ends_with("/checkpoints")) checkpoints_ = opened;
    return opened;
  }
  int fstat(int descriptor, struct stat& status) override {
    const int result = FileSystem::fstat(descriptor, status);
    if (descriptor == checkpoints_) ++status.st_dev;
    return result;
  }
  int close(int descriptor) override {
    if (descriptor == checkpoints_) checkpoints_ = -1;
    return FileSystem::close(descriptor);
  }

 private:
  int checkpoints_ = -1;
};

void make_run(const RunDirectory& run) {
  run.create();
  for (const std::int64_t step : {10, 20, 30}) write_bytes(run.checkpoint_file(step), std::to_string(step));
  write_bytes(run.metrics_file(), "{}\n");
  run.set_last(30);
}

}  // namespace

TEST_CASE("wherever going back is interrupted, the last checkpoint exists, and it can be completed") {
  for (int calls = 0;; ++calls) {
    const TemporaryFolder folder;
    const RunDirectory run(folder / "run");
    make_run(run);
    Ending fs(calls);
    bool killed = false;
    try {
      move_later_checkpoints(RunDirectory(run.path(), fs), 10);
    } catch (const Killed&) {
      killed = true;
    }
    INFO("killed after " << calls << " calls");
    REQUIRE(run.last().has_value());
    REQUIRE(file_exists(run.checkpoint_file(*run.last())));
    const bool moved = run.checkpoints() != std::vector<std::int64_t>{10, 20, 30};
    std::string completed = complete_return(run);
    REQUIRE((!moved || run.checkpoints() == std::vector<std::int64_t>{10}));
    REQUIRE(complete_return(run).empty());
    if (completed.empty() && killed) completed = move_later_checkpoints(run, 10);
    REQUIRE(run.last() == 10);
    const std::string aside = run.path() + "/abandoned-1";
    REQUIRE((completed.empty() || completed == aside));
    REQUIRE(file_names(aside) == std::vector<std::string>{"metrics.jsonl", "step-00000020.maki", "step-00000030.maki"});
    REQUIRE(read_bytes(aside + "/step-00000030.maki") == "30");
    REQUIRE(file_names(run.path()) == std::vector<std::string>{"abandoned-1", "checkpoints", "metrics.jsonl"});
    if (!killed) break;
    REQUIRE(calls < 100);
  }
}

TEST_CASE("before a return is complete, both the old and the new names of what was moved are durable") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  make_run(run);
  Ending fs(1000);
  REQUIRE(move_later_checkpoints(RunDirectory(run.path(), fs), 10) == run.path() + "/abandoned-1");
  const auto at = [&](const std::string& call) {
    const auto found = std::find(fs.calls.rbegin(), fs.calls.rend(), call);
    REQUIRE(found != fs.calls.rend());
    return fs.calls.rend() - found;
  };
  for (const char* const moved : {"rename step-00000020.maki", "rename step-00000030.maki"}) {
    REQUIRE(at("fsync returning-to-10") > at(moved));
    REQUIRE(at("fsync checkpoints") > at(moved));
  }
  REQUIRE(at("rename abandoned-1") > at("fsync checkpoints"));
  REQUIRE(at("rename abandoned-1") > at("fsync returning-to-10"));
  REQUIRE(at("fsync run") > at("rename abandoned-1"));
}

TEST_CASE("only a folder that a return has made is completed") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  make_run(run);
  for (const char* const name : {"returning-to-15", "returning-to-010", "returning-to-", "returning-to-10x"})
    std::filesystem::create_directory(run.path() + "/" + name);
  REQUIRE(complete_return(run).empty());
  REQUIRE(run.checkpoints() == std::vector<std::int64_t>{10, 20, 30});
  REQUIRE(run.last() == 30);
}

TEST_CASE("a run whose checkpoints are on another disk goes back only once the later ones are gone") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  make_run(run);
  TwoDisks fs;
  const RunDirectory divided(run.path(), fs);
  REQUIRE_THROWS_WITH(move_later_checkpoints(divided, 10),
                      ContainsSubstring("is on another file system") && ContainsSubstring("after step 10"));
  REQUIRE(file_names(run.path()) == std::vector<std::string>{"checkpoints", "metrics.jsonl"});
  REQUIRE(run.checkpoints() == std::vector<std::int64_t>{10, 20, 30});
  REQUIRE(run.last() == 30);
  for (const std::int64_t later : {20, 30}) std::filesystem::remove(run.checkpoint_file(later));
  REQUIRE(move_later_checkpoints(divided, 10).empty());
}
