// Going back to an earlier checkpoint: wherever it is interrupted, `last` names a checkpoint that exists, and doing it
// again completes it.
#include "train/run/set_aside.h"

#include <cerrno>

#include "tests/catch.h"
#include "tests/files.h"
#include "train/config/error.h"

using namespace maki;
using namespace maki::tests;

namespace {

// The real file system, in which the rename of this number fails.
class FailingRename final : public FileSystem {
 public:
  explicit FailingRename(int failing) : failing_(failing) {}
  int rename(const std::string& from, const std::string& to) override {
    if (renames_++ != failing_) return FileSystem::rename(from, to);
    errno = EIO;
    return -1;
  }

 private:
  int failing_, renames_ = 0;
};

}  // namespace

TEST_CASE("wherever going back is interrupted, the last checkpoint exists, and going back again completes it") {
  int failures = 0;
  for (int failing = 0;; ++failing) {
    const TemporaryFolder folder;
    const RunDirectory run(folder / "run");
    run.create();
    for (const std::int64_t step : {10, 20, 30}) write_bytes(run.checkpoint_file(step), "checkpoint");
    write_bytes(run.metrics_file(), "{}\n");
    run.set_last(30);

    FailingRename fs(failing);
    const RunDirectory interrupted(run.path(), fs);
    const std::string message = error_message<CheckpointError>([&] { move_later_checkpoints(interrupted, 10, fs); });
    INFO("rename " << failing << ": " << message);
    REQUIRE(run.last().has_value());
    REQUIRE(file_exists(run.checkpoint_file(*run.last())));
    move_later_checkpoints(run, 10);
    REQUIRE(run.checkpoints() == std::vector<std::int64_t>{10});
    REQUIRE(run.last() == 10);
    if (message.empty()) break;
    ++failures;
  }
  REQUIRE(failures == 4);  // the copy of metrics.jsonl, `last` and two checkpoints
}
