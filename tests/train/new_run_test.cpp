// The start of a run: no file of the user is overwritten or deleted, and a failed start removes what it created.
#include "train/run/new_run.h"

#include <cerrno>
#include <cstring>
#include <sys/file.h>

#include "data/io/error.h"
#include "tests/files.h"

using namespace maki;
using namespace maki::tests;

namespace {

const std::string kConfigText = "# the configuration of this run\nseed = 1\n";

std::vector<std::string> everything_in(const std::string& path) {
  std::vector<std::string> list;
  if (!std::filesystem::exists(path)) return list;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) list.push_back(entry.path().string());
  std::ranges::sort(list);
  return list;
}

}  // namespace

TEST_CASE("a directory with files that maki did not create is rejected, naming one of them, and is unchanged") {
  for (const char* name : {"notes.txt", "config.toml", "metrics.jsonl", ".lock", "checkpoints/last", "checkpoints/best",
                           "checkpoints/model.bin", "checkpoints/notes.tmp", "config.toml.tmp", "sub/file", ".hidden",
                           "checkpoints/a/b"}) {
    const TemporaryFolder folder;
    const RunDirectory run(folder / "run");
    folder.write(std::string("run/") + name, "the user's");
    const auto before = everything_in(folder.path());
    INFO(name);
    const std::string said = error_message<Error>([&] { RunClaim(run, kConfigText); });
    REQUIRE(contains(said, run.path()));
    REQUIRE(contains(said, std::string(name).substr(0, std::string(name).find('/'))));
    REQUIRE(contains(said, "`out`"));
    REQUIRE(everything_in(folder.path()) == before);
    REQUIRE(read_bytes(run.path() + "/" + name) == "the user's");
  }
}

TEST_CASE("of files that maki did not create, only short ones with the name of a run's file are read") {
  struct Counting : FileSystem {
    ssize_t read(int descriptor, void* bytes, std::size_t size) override {
      const ssize_t n = FileSystem::read(descriptor, bytes, size);
      bytes_read += n;
      return n;
    }
    ssize_t bytes_read = 0;
  };
  const auto bytes_read = [](const std::string& name, const std::string& content) {
    const TemporaryFolder folder;
    Counting fs;
    const RunDirectory run(folder / "run", fs);
    folder.write("run/" + name, content);
    INFO(name);
    REQUIRE(contains(error_message<Error>([&] { require_unoccupied(run); }), "contains " + name + ", which"));
    return fs.bytes_read;
  };
  REQUIRE(bytes_read("notes.txt", "short") == 0);
  REQUIRE(bytes_read("weights.bin", std::string(1 << 20, '1')) == 0);
  for (const char* const name : {".lock", "metrics.jsonl", "config.toml", "config.toml.tmp"})
    REQUIRE(bytes_read(name, std::string(1 << 20, '1')) == 0);
}

TEST_CASE("a link in place of a file of the run or of its folder of checkpoints is rejected") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  const std::string elsewhere = folder.write("elsewhere/config.toml", kConfigText);
  std::filesystem::create_directory(run.path());
  for (const char* name : {"config.toml", "checkpoints", "metrics.jsonl"}) {
    std::filesystem::create_symlink(elsewhere, run.path() + "/" + name);
    INFO(name);
    REQUIRE(contains(error_message<Error>([&] { RunClaim(run, kConfigText); }), name));
    std::filesystem::remove(run.path() + "/" + name);
  }
  REQUIRE(read_bytes(elsewhere) == kConfigText);
}

TEST_CASE("a directory is accepted if it is missing, empty, or holds only what a killed start left") {
  const TemporaryFolder folder;
  { const RunClaim missing(RunDirectory(folder / "a/b/run"), kConfigText); }
  std::filesystem::create_directory(folder / "empty");
  { const RunClaim empty(RunDirectory(folder / "empty"), kConfigText); }
  const RunDirectory run(folder / "run");
  { const RunClaim killed(run, kConfigText); }  // leaves its lock file and the directories
  write_bytes(run.config_file(), kConfigText);
  write_bytes(run.config_file() + ".tmp", kConfigText.substr(0, 10));
  write_bytes(run.metrics_file(), "");
  write_bytes(run.checkpoint_file(0) + ".tmp", "torn");
  write_bytes(run.checkpoints_directory() + "/last.tmp", "torn");
  { const RunClaim again(run, kConfigText); }
  // A run with another configuration would overwrite this one.
  REQUIRE(contains(error_message<Error>([&] { RunClaim(run, "seed = 2\n"); }),
                   "config.toml, which has other settings than this run; choose another `out`"));
  REQUIRE(read_bytes(run.config_file()) == kConfigText);
  write_bytes(run.checkpoint_file(10), "a checkpoint");
  REQUIRE(contains(error_message<Error>([&] { RunClaim(run, kConfigText); }), "`resume`"));
}

TEST_CASE("a failed start removes what it created, and nothing else") {
  const TemporaryFolder folder;
  const auto begin_and_fail = [](const RunDirectory& run) {
    RunClaim claimed(run, kConfigText);
    for (const std::string& file : run.initial_files()) write_bytes(file, kConfigText);
    claimed.roll_back();
  };
  begin_and_fail(RunDirectory(folder / "a/b/run"));
  REQUIRE(everything_in(folder.path()).empty());

  std::filesystem::create_directories(folder / "mine/run");
  begin_and_fail(RunDirectory(folder / "mine/run"));
  REQUIRE(everything_in(folder.path()) == std::vector<std::string>{folder / "mine", folder / "mine/run"});

  // What was there before stays, and so does what somebody put there in the meantime.
  folder.write("mine/run/config.toml", kConfigText);
  std::filesystem::create_directory(folder / "mine/run/checkpoints");
  begin_and_fail(RunDirectory(folder / "mine/run"));
  REQUIRE(everything_in(folder / "mine/run") ==
          std::vector<std::string>{folder / "mine/run/checkpoints", folder / "mine/run/config.toml"});
  {
    const RunDirectory run(folder / "other");
    RunClaim claimed(run, kConfigText);
    folder.write("other/notes.txt", "the user's");
    claimed.roll_back();
    REQUIRE(everything_in(folder / "other") == std::vector<std::string>{folder / "other/notes.txt"});
  }
}

TEST_CASE("of two starts in one directory the second is rejected and removes nothing") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  const RunClaim first(run, kConfigText);
  const auto before = everything_in(folder.path());
  REQUIRE(contains(error_message<Error>([&] { RunClaim(run, kConfigText); }), "is locked by process"));
  REQUIRE(everything_in(folder.path()) == before);
}

TEST_CASE("a directory that cannot be locked is not reported as locked") {
  struct NoLocks : FileSystem {
    int flock(int, int) override {
      errno = ENOLCK;
      return -1;
    }
  } fs;
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run", fs);
  const std::string said = error_message<CheckpointError>([&] { RunClaim(run, kConfigText); });
  INFO(said);
  REQUIRE(contains(said, run.path()));
  REQUIRE(contains(said, std::strerror(ENOLCK)));
  REQUIRE(contains(said, "file system"));
  REQUIRE_FALSE(contains(said, "process"));
  REQUIRE(everything_in(folder.path()).empty());
}

TEST_CASE("every new directory is made durable, and a failure of that is an error") {
  struct Watched : FileSystem {
    int open(const std::string& path, int flags, mode_t mode) override {
      const int descriptor = FileSystem::open(path, flags, mode);
      last_opened = path;
      return descriptor;
    }
    int fsync(int descriptor) override {
      synced.push_back(last_opened);
      if (fails) errno = EIO;
      return fails ? -1 : FileSystem::fsync(descriptor);
    }
    std::string last_opened;
    std::vector<std::string> synced;
    bool fails = false;
  } fs;
  const TemporaryFolder folder;
  folder.write("text", "");
  RunDirectory(folder / "a/run", fs).create();
  REQUIRE(fs.synced == std::vector<std::string>{folder.path(), folder / "a", folder / "a/run"});
  // An empty one may have been made by a process that was killed before it had made it durable.
  std::filesystem::create_directory(folder / "a/left");
  fs.synced.clear();
  RunDirectory(folder / "a/left", fs).create();
  REQUIRE(fs.synced == std::vector<std::string>{folder / "a", folder / "a/left"});
  fs.fails = true;
  REQUIRE(contains(error_message<CheckpointError>([&] { RunClaim(RunDirectory(folder / "b", fs), kConfigText); }),
                   "fsync"));
  REQUIRE_FALSE(std::filesystem::exists(folder / "b"));
}

TEST_CASE("a path of a run means the same as to the system: links are followed before \"..\"") {
  const TemporaryFolder folder;
  RunDirectory(folder / "a/../b/run").create();
  REQUIRE(std::filesystem::is_directory(folder / "b/run/checkpoints"));
  std::filesystem::create_directories(folder / "far/away");
  std::filesystem::create_directory_symlink(folder / "far/away", folder / "link");
  { const RunClaim claim(RunDirectory(folder / "link/../run"), kConfigText); }
  REQUIRE(std::filesystem::is_directory(folder / "far/run/checkpoints"));
  REQUIRE_FALSE(std::filesystem::exists(folder / "run"));
}
