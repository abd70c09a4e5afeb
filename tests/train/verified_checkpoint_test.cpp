// Which checkpoint of a run is resumed from.
#include "train/run/verified_checkpoint.h"

#include "data/io/error.h"
#include "tests/train/small_checkpoint.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("the newest intact checkpoint is used, and the others are reported") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  run.create();
  const auto put = [&](std::int64_t step) {
    write_smallest(run.checkpoint_file(step), [&](CheckpointState& state) { state.step = step; });
  };
  for (const std::int64_t step : {10, 20, 30}) put(step);
  std::vector<std::string> notes;
  const auto newest = [&] { return newest_intact(run, notes).state().step; };
  REQUIRE(newest() == 30);
  REQUIRE(notes.empty());
  write_bytes(run.checkpoint_file(30), "damaged");
  std::filesystem::copy_file(run.checkpoint_file(10), run.checkpoint_file(20),
                             std::filesystem::copy_options::overwrite_existing);
  REQUIRE(newest() == 10);
  REQUIRE(notes.size() == 2);
  REQUIRE(contains(notes[0], "step-00000030.maki"));
  REQUIRE(contains(notes[1], "step-00000020.maki: contains the state of step 10, not of the step in its name"));
  // A pointer to a missing file is reported, too.
  notes.clear();
  put(30);
  run.set_last(40);
  REQUIRE(newest() == 30);
  REQUIRE(notes.size() == 1);
  REQUIRE(contains(notes[0], "checkpoints/last"));
  REQUIRE(contains(notes[0], "step-00000040.maki"));
  run.set_last(30);
  notes.clear();
  REQUIRE(newest() == 30);
  REQUIRE(notes.empty());
  for (const std::int64_t step : {10, 20, 30}) write_bytes(run.checkpoint_file(step), "damaged");
  REQUIRE(contains(error_message<CheckpointError>([&] { newest(); }), "no intact checkpoint"));
}

TEST_CASE("what is loaded comes from the file that was verified, even if another takes its name") {
  const TemporaryFolder folder;
  const std::string path = write_smallest(folder / "a.maki");
  const VerifiedCheckpoint checkpoint(path);
  const std::string values = checkpoint.file().read("values");
  std::filesystem::remove(path);
  write_bytes(path, "another");
  REQUIRE(checkpoint.file().read("values") == values);
}
