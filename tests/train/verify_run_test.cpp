// Verifying the checkpoints of a run that goes on meanwhile, and deletes old ones.
#include <functional>
#include <utility>

#include "tests/train/small_checkpoint.h"
#include "train/run/verified_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

// The real file system, which calls a function when a file is opened for the first time.
struct Meanwhile : FileSystem {
  int open(const std::string& path, int flags, mode_t mode) override {
    if (action) std::exchange(action, {})();
    return FileSystem::open(path, flags, mode);
  }
  std::function<void()> action;
};

void write_step(const RunDirectory& run, std::int64_t step) {
  write_smallest(run.checkpoint_file(step), [&](CheckpointState& state) { state.step = step; });
}

}  // namespace

TEST_CASE("a checkpoint that is deleted after it was listed has no verdict, and a damaged one is a fault") {
  const TemporaryFolder folder;
  Meanwhile fs;
  const RunDirectory run(folder / "run", fs);
  run.create();
  for (const std::int64_t step : {1, 2, 3}) write_step(run, step);
  REQUIRE(verify_run(run).size() == 3);
  fs.action = [&] { std::filesystem::remove(run.checkpoint_file(2)); };
  const std::vector<Verdict> two = verify_run(run);
  REQUIRE(two.size() == 2);
  for (const Verdict& verdict : two) REQUIRE(verdict.fault.empty());
  REQUIRE(two[1].path == run.checkpoint_file(3));
  // All that were listed are deleted: there is a newer one.
  fs.action = [&] {
    write_step(run, 4);
    for (const std::int64_t step : {1, 3}) std::filesystem::remove(run.checkpoint_file(step));
  };
  const std::vector<Verdict> newer = verify_run(run);
  REQUIRE(newer.size() == 1);
  REQUIRE(newer[0].path == run.checkpoint_file(4));
  REQUIRE(newer[0].fault.empty());
  write_bytes(run.checkpoint_file(4), "damaged");
  REQUIRE_FALSE(verify_run(run).at(0).fault.empty());
  std::filesystem::remove(run.checkpoint_file(4));
  REQUIRE(verify_run(run).empty());
}

TEST_CASE("a checkpoint beside a config.toml with which training would not resume is a fault") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  run.create();
  write_step(run, 1);
  Config config = VerifiedCheckpoint(run, run.checkpoint_file(1)).state().config;
  const auto fault_with = [&](const std::string& toml) {
    write_bytes(run.config_file(), toml);
    return verify_run(run).at(0).fault;
  };
  config.eval_interval = 7;  // may change
  REQUIRE(fault_with(to_toml(config)).empty());
  config.dropout = 0.375;
  REQUIRE(contains(fault_with(to_toml(config)), "dropout is fixed for this run at 0.0; got 0.375"));
  REQUIRE(contains(fault_with("x = ["), run.config_file()));
}
