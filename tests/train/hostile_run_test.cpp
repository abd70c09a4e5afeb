// A run that somebody else has made: links, pipes and devices in place of its files are refused, and what they stand
// for is neither changed, nor waited for, nor read for ever.
#include <functional>
#include <sys/stat.h>
#include <unistd.h>

#include "data/io/error.h"
#include "tests/files.h"
#include "train/run/config/config.h"
#include "train/run/container.h"
#include "train/run/metrics.h"
#include "train/run/run_lock.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("a lock file that is a link, a pipe or anything that maki did not write is refused, and not changed") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  run.create();
  const std::string keys = folder.write("keys", "secret"), digits = folder.write("digits", "12345"),
                    lock = RunLock::file(run);
  const auto require_refused = [&](const std::function<void()>& make) {
    make();
    const std::string said = error_message<CheckpointError>([&] { RunLock{run}; });
    INFO(said);
    REQUIRE(contains(said, lock + ": must "));
    REQUIRE(read_bytes(keys) == "secret");
    REQUIRE(read_bytes(digits) == "12345");
    std::filesystem::remove(lock);
  };
  require_refused([&] { std::filesystem::create_symlink(keys, lock); });
  require_refused([&] { std::filesystem::create_symlink(digits, lock); });
  require_refused([&] { std::filesystem::create_symlink("/dev/zero", lock); });
  require_refused([&] { std::filesystem::create_hard_link(digits, lock); });
  require_refused([&] { REQUIRE(mkfifo(lock.c_str(), 0600) == 0); });
  for (const char* text : {"secret", "12 ", "123456789012345678901"}) {
    require_refused([&] {
      write_bytes(lock, text);
      REQUIRE(contains(error_message<CheckpointError>([&] { RunLock{run}; }), "move the file away"));
      REQUIRE(read_bytes(lock) == text);
    });
  }
  write_bytes(lock, "12345678901234567890");
  { const RunLock good(run); }
  REQUIRE(read_bytes(lock) == std::to_string(getpid()));
}

TEST_CASE("a pipe or a device in place of a pointer, config.toml or metrics.jsonl is refused, and not waited for") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  run.create();
  write_container(posix_file_system(), run.checkpoint_file(10), {});
  std::vector<std::string> notes;
  Config config;
  const std::vector<std::pair<std::string, std::function<void()>>> readers = {
      {run.checkpoints_directory() + "/last", [&] { find_checkpoint(run.path(), "", notes); }},
      {run.checkpoints_directory() + "/best", [&] { find_checkpoint(run.path(), "", notes); }},
      {run.checkpoint_file(20),
       [&] { find_checkpoint(run.path(), "20", notes), ContainerReader(run.checkpoint_file(20)); }},
      {run.config_file(), [&] { run.apply_config(config); }},
      {run.metrics_file(), [&] { const MetricsFile metrics(run.metrics_file(), 10); }}};
  for (const auto& [path, read] : readers) {
    for (const bool pipe : {true, false}) {
      if (pipe) REQUIRE(mkfifo(path.c_str(), 0600) == 0);
      if (!pipe) std::filesystem::create_symlink("/dev/zero", path);
      INFO(path);
      REQUIRE(contains(error_message<CheckpointError>(read), path + ": is not a regular file"));
      std::filesystem::remove(path);
    }
  }
}
