// The run directory: never two runs in one, never two processes, and the checkpoints that `last` and `best` name are
// kept.
#include "train/run/run_directory.h"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

#include "data/io/error.h"
#include "tests/data/process_scopes.h"
#include "tests/files.h"
#include "train/run/container.h"
#include "train/run/metrics.h"
#include "train/run/run_lock.h"

using namespace maki;
using namespace maki::tests;

namespace {

using Steps = std::vector<std::int64_t>;

void put_checkpoints(const RunDirectory& run, const Steps& steps) {
  for (const std::int64_t step : steps) write_bytes(run.checkpoint_file(step), "checkpoint");
}

}  // namespace

TEST_CASE("a directory that contains a run is rejected with a hint to --resume, an empty one is accepted") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "a/b/run");
  REQUIRE_FALSE(run.exists());
  run.create();
  REQUIRE(std::filesystem::is_directory(folder / "a/b/run/checkpoints"));
  REQUIRE_FALSE(run.exists());
  run.create();
  // A run that died before its first checkpoint has nothing to resume and is started again.
  write_bytes(run.config_file(), "seed = 1\n");
  REQUIRE_FALSE(run.exists());
  put_checkpoints(run, {0});
  REQUIRE(contains(error_message<Error>([&] { run.create(); }), "`resume`"));
  write_bytes(folder / "file", "");
  REQUIRE(contains(error_message<Error>([&] { RunDirectory(folder / "file").create(); }), "file"));
}

TEST_CASE("slashes at the end of the path are no part of it") {
  REQUIRE(RunDirectory("runs/a//").metrics_file() == "runs/a/metrics.jsonl");
  REQUIRE(RunDirectory("/").path() == "/");
}

TEST_CASE("checkpoints are found by their names alone") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  run.create();
  REQUIRE(run.checkpoint_file(250).ends_with("/checkpoints/step-00000250.maki"));
  put_checkpoints(run, {250, 0, 1234567890, 30});
  for (const char* name :
       {"last", "step-.maki", "step-x.maki", "step--1.maki", "step-1.maki", "step-1.maki.tmp", "other.maki"}) {
    write_bytes(folder / "run/checkpoints/" + name, "");
  }
  REQUIRE(run.checkpoints() == Steps{0, 30, 250, 1234567890});
}

TEST_CASE("pointers return what was written, and a damaged one points to nothing") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  run.create();
  REQUIRE_FALSE(run.last().has_value());
  REQUIRE_FALSE(run.best().has_value());
  run.set_last(250);
  run.set_best({240, 1.0 / 3});
  REQUIRE(run.last() == 250);
  REQUIRE(run.best()->step == 240);
  REQUIRE(run.best()->loss == 1.0 / 3);
  REQUIRE(contains(read_bytes(folder / "run/checkpoints/last"), "step-00000250.maki"));
  REQUIRE(contains(read_bytes(folder / "run/checkpoints/best"), "step-00000240.maki 240 0.333"));
  run.clear_best();
  REQUIRE_FALSE(run.best().has_value());
  for (const char* text : {"", "\n", "nonsense", "../../etc/passwd", "step-00000001.maki", "step-00000001.maki 2 0.5",
                           "step-00000001.maki 1", "step-00000001.maki 1 x"}) {
    write_bytes(folder / "run/checkpoints/best", text);
    INFO(text);
    REQUIRE_FALSE(run.best().has_value());
  }
  for (const char* text : {"", "nonsense", "step-x.maki"}) {
    write_bytes(folder / "run/checkpoints/last", text);
    REQUIRE_FALSE(run.last().has_value());
  }
}

TEST_CASE("a pointer that cannot be written is unchanged") {
  const TemporaryFolder folder;
  struct Full : FileSystem {
    ssize_t write(int, const void*, std::size_t) override {
      errno = ENOSPC;
      return -1;
    }
  } full;
  RunDirectory(folder / "run").create();
  RunDirectory(folder / "run").set_last(1);
  const RunDirectory run(folder / "run", full);
  REQUIRE(contains(error_message<CheckpointError>([&] { run.set_last(2); }), "No space left"));
  REQUIRE(run.last() == 1);
}

TEST_CASE("pruning keeps the newest, and what last and best name") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  run.create();
  put_checkpoints(run, {0, 10, 20, 30, 40, 50});
  run.set_last(50);
  run.set_best({10, 1.5});
  REQUIRE(run.prune(10).empty());
  REQUIRE(run.checkpoints() == Steps{0, 10, 20, 30, 40, 50});
  REQUIRE(run.prune(2).empty());
  REQUIRE(run.checkpoints() == Steps{10, 40, 50});
  REQUIRE(run.prune(1).empty());
  REQUIRE(run.checkpoints() == Steps{10, 50});
  // After a fallback `last` may be older than files that are no longer trusted.
  run.set_last(10);
  run.set_best({50, 1.5});
  put_checkpoints(run, {60, 70});
  REQUIRE(run.prune(1).empty());
  REQUIRE(run.checkpoints() == Steps{10, 50, 70});
}

TEST_CASE("what an interrupted write left behind is removed, and nothing else") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  run.create();
  put_checkpoints(run, {10});
  write_bytes(run.checkpoint_file(20) + ".tmp", "torn");
  write_bytes(run.config_file() + ".tmp", "torn");
  write_bytes(run.metrics_file(), "");
  write_bytes(folder / "run/notes.tmp", "the user's");
  REQUIRE(run.remove_temporary_files().empty());
  REQUIRE(run.checkpoints() == Steps{10});
  REQUIRE_FALSE(std::filesystem::exists(run.checkpoint_file(20) + ".tmp"));
  REQUIRE_FALSE(std::filesystem::exists(run.config_file() + ".tmp"));
  REQUIRE(std::filesystem::exists(run.metrics_file()));
  REQUIRE(std::filesystem::exists(folder / "run/notes.tmp"));
}

TEST_CASE("a second process is rejected while the first one runs, and is told its process id") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  run.create();
  {
    const RunLock lock(run);
    const std::string said = error_message<Error>([&] { const RunLock second(run); });
    REQUIRE(contains(said, folder / "run"));
    REQUIRE(contains(said, std::to_string(getpid())));
  }
  const RunLock again(run);
}

TEST_CASE("the default run directory is named after the first corpus, with the lowest free number") {
  const TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::create_directories(folder / "runs/text-1");
  std::filesystem::create_directories(folder / "runs/text-3");
  std::filesystem::current_path(folder / "");
  std::vector<std::string> names;
  for (const char* corpus : {"text.txt", "/far/away/text.txt", "other.txt", "folder/", "-", "@stories",
                             "@stories-ja:500", "..", "/", "吾輩.txt"}) {
    names.push_back(default_run_path(corpus));
  }
  const std::string too_long = error_message<Error>([] { default_run_path(std::string(254, 'x') + ".txt"); });
  std::filesystem::current_path(before);
  REQUIRE(contains(too_long, "`out`"));
  REQUIRE(names == std::vector<std::string>{"runs/text-2", "runs/text-2", "runs/other-1", "runs/folder-1",
                                            "runs/stdin-1", "runs/stories-1", "runs/stories-ja-1", "runs/run-1",
                                            "runs/run-1", "runs/吾輩-1"});
}

TEST_CASE("find_checkpoint returns best, else last, or the requested one") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  std::vector<std::string> notes;
  const auto said = [&](const std::string& choice) {
    return error_message<Error>([&] { find_checkpoint(folder / "run", choice, notes); });
  };
  REQUIRE(contains(said(""), "no such run"));
  run.create();
  REQUIRE(contains(said(""), "no run with a checkpoint; name a run, as maki train makes one"));
  for (const std::int64_t step : {10, 20, 30}) write_container(posix_file_system(), run.checkpoint_file(step), {});
  run.set_last(30);
  REQUIRE(find_checkpoint(folder / "run", "", notes) == run.checkpoint_file(30));
  REQUIRE(contains(said("best"), "no checkpoint named best; choose another one: it has those of steps 10, 20, 30"));
  run.set_best({20, 1.0});
  REQUIRE(find_checkpoint(folder / "run", "", notes) == run.checkpoint_file(20));
  REQUIRE(find_checkpoint(folder / "run", "best", notes) == run.checkpoint_file(20));
  REQUIRE(find_checkpoint(folder / "run", "last", notes) == run.checkpoint_file(30));
  REQUIRE(find_checkpoint(folder / "run", "10", notes) == run.checkpoint_file(10));
  REQUIRE(find_checkpoint(run.checkpoint_file(10), "", notes) == run.checkpoint_file(10));
  REQUIRE(notes.empty());
  std::filesystem::resize_file(run.checkpoint_file(20), 10);
  REQUIRE(find_checkpoint(folder / "run", "", notes) == run.checkpoint_file(30));
  REQUIRE((notes.size() == 1 && contains(notes[0], "step-00000020.maki")));
  for (const char* choice : {"11", "-10", "newest", "10x", "1e1"}) {
    INFO(choice);
    REQUIRE(contains(said(choice), choice));
  }
  REQUIRE_FALSE(error_message<Error>([&] { find_checkpoint(run.checkpoint_file(10), "best", notes); }).empty());
}

TEST_CASE(
    "a best checkpoint that is damaged is passed over once, also if it is the oldest, and the last error is thrown") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  run.create();
  for (const std::int64_t step : {10, 20, 30}) write_container(posix_file_system(), run.checkpoint_file(step), {});
  const auto damage = [&](std::int64_t step) { std::filesystem::resize_file(run.checkpoint_file(step), 10); };
  run.set_best({10, 1.0});
  run.set_last(30);
  damage(10);
  std::vector<std::string> notes;
  REQUIRE(find_checkpoint(run.path(), "", notes) == run.checkpoint_file(30));
  REQUIRE((notes.size() == 1 && contains(notes[0], "step-00000010.maki")));
  damage(30);
  notes.clear();
  REQUIRE(find_checkpoint(run.path(), "", notes) == run.checkpoint_file(20));
  REQUIRE((notes.size() == 2 && contains(notes[1], "step-00000030.maki")));
  damage(20);
  notes.clear();
  REQUIRE(contains(error_message<CorruptFile>([&] { find_checkpoint(run.path(), "", notes); }), "step-00000020.maki"));
  REQUIRE(notes.size() == 2);
}

TEST_CASE("what is found to be damaged when it is read is replaced as well, unless a step or a file was chosen") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  run.create();
  for (const std::int64_t step : {10, 20, 30}) write_container(posix_file_system(), run.checkpoint_file(step), {});
  run.set_best({10, 1.0});
  run.set_last(30);
  std::vector<std::string> notes, tried;
  const auto read = [&](const std::string& path, const std::string& choice, int damaged) {
    tried.clear();
    notes.clear();
    return ChosenCheckpoint(path, choice, notes).read([&](const std::string& file) {
      tried.push_back(file);
      check<CorruptFile>(std::ssize(tried) > damaged, "{}: damaged", file);
      return file;
    });
  };
  REQUIRE(read(run.path(), "", 0) == run.checkpoint_file(10));
  REQUIRE(notes.empty());
  REQUIRE(read(run.path(), "", 2) == run.checkpoint_file(20));
  REQUIRE(tried == std::vector{run.checkpoint_file(10), run.checkpoint_file(30), run.checkpoint_file(20)});
  REQUIRE(notes == std::vector{run.checkpoint_file(10) + ": damaged; using another checkpoint, that of step 30",
                               run.checkpoint_file(30) + ": damaged; using another checkpoint, that of step 20"});
  REQUIRE(contains(error_message<CorruptFile>([&] { read(run.path(), "", 3); }), "step-00000020.maki: damaged"));
  for (const auto& [path, choice] :
       {std::pair(run.path(), "10"), {run.path(), "best"}, {run.checkpoint_file(10), ""}}) {
    REQUIRE(contains(error_message<CorruptFile>([&, path = path, choice = choice] { read(path, choice, 1); }),
                     "step-00000010.maki: damaged"));
    REQUIRE(tried.size() == 1);
  }
}

TEST_CASE("the last checkpoint of a run that was ended before it had the pointer is the newest") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  run.create();
  for (const std::int64_t step : {10, 20}) write_container(posix_file_system(), run.checkpoint_file(step), {});
  std::vector<std::string> notes;
  REQUIRE(find_checkpoint(run.path(), "last", notes) == run.checkpoint_file(20));
  REQUIRE(contains(error_message<Error>([&] { find_checkpoint(run.path(), "best", notes); }), "named best"));
  run.set_last(10);
  REQUIRE(find_checkpoint(run.path(), "last", notes) == run.checkpoint_file(10));
  REQUIRE(notes.empty());
}

TEST_CASE("where a path is no run, the message names one that is in it, or the directory above") {
  const TemporaryFolder folder;
  std::vector<std::string> notes;
  const auto said = [&](const std::string& path) {
    return error_message<Error>([&] { find_checkpoint(path, "", notes); });
  };
  for (const char* const name : {"runs/b", "runs/c"}) {
    const RunDirectory run(folder / name);
    run.create();
    for (std::int64_t step = 1; step <= 9; ++step) put_checkpoints(run, {step});
  }
  RunDirectory(folder / "runs/a").create();  // without a checkpoint
  REQUIRE(runs_in(folder / "runs") == std::vector<std::string>{"b", "c"});
  REQUIRE(contains(said(folder / "runs"), "name a run that is in it, such as " + (folder / "runs/b")));
  REQUIRE(contains(said(folder / "runs/b/checkpoints"), "the directory above it"));
  REQUIRE(contains(said(folder.path()), "name a run, as maki train makes one"));
  const std::string step = error_message<Error>([&] { find_checkpoint(folder / "runs/b", "10", notes); });
  REQUIRE(contains(step, "no checkpoint of step 10; choose another one: it has those of steps …, 2, 3, 4, "));
}

TEST_CASE("a path that cannot be accessed is reported as an error of maki, not as another exception") {
  const TemporaryFolder folder;
  std::vector<std::string> notes;
  std::filesystem::create_symlink("loop", folder / "loop");
  for (const std::string& path : {std::string(5000, 'x'), folder / std::string(300, 'x'), folder / "loop"}) {
    INFO(path.substr(0, 60));
    REQUIRE_FALSE(error_message<Error>([&] { find_checkpoint(path, "", notes); }).empty());
    REQUIRE_FALSE(error_message<Error>([&] { RunDirectory(path).create(); }).empty());
    REQUIRE_FALSE(error_message<Error>([&] { file_exists(path); }).empty());
    REQUIRE_FALSE(error_message<Error>([&] { MetricsFile(path, 0); }).empty());
  }
}

TEST_CASE("a place in which a run cannot be written is refused before anything is read for it") {
  const TemporaryFolder folder;
  RunDirectory(folder / "open/run").require_place();
  std::filesystem::create_directory(folder / "closed");
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  std::filesystem::permissions(folder / "closed", std::filesystem::perms::others_read);
  const DroppedPrivileges nobody;
  RunDirectory(folder / "open/run").require_place();
  for (const std::string& path : {folder / "closed", folder / "closed/run", folder / "closed/runs/run"}) {
    const std::string said = error_message<CheckpointError>([&] { RunDirectory(path).require_place(); });
    INFO(said);
    REQUIRE(contains(said, path + ": cannot be "));
    REQUIRE(contains(said, "Permission denied"));
  }
}

TEST_CASE("a run directory that cannot be accessed is not treated as empty") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  run.create();
  put_checkpoints(run, {10});
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  std::filesystem::permissions(folder / "run/checkpoints", std::filesystem::perms::none);
  std::vector<std::string> said;
  {
    const DroppedPrivileges nobody;
    said = {error_message<CheckpointError>([&] { run.exists(); }), error_message<CheckpointError>([&] { run.last(); }),
            error_message<CheckpointError>([&] { (void)run.remove_temporary_files(); })};
  }
  std::filesystem::permissions(folder / "run/checkpoints", std::filesystem::perms::all);
  for (const std::string& words : said) {
    INFO(words);
    REQUIRE(contains(words, "run/checkpoints"));
    REQUIRE(contains(words, "Permission denied"));
  }
  REQUIRE(run.exists());
}
