// A run that is killed (SIGKILL) at random moments around its checkpoints resumes each time, and ends like a run that
// was never killed: the same checkpoint, the same best, the same measurements, no files left over.
#include <filesystem>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "autograd/core/philox.h"
#include "tests/catch.h"
#include "tests/cli/every_kind.h"
#include "tests/metrics_lines.h"
#include "tests/train/resumable_run.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Kills the process `moment` microseconds after it has begun to write the checkpoint of this step.
std::function<void(pid_t)> killer(const ResumableRun& run, int step, useconds_t moment) {
  return [&run, step, moment](pid_t process) {
    const std::string temporary = checkpoint(run.path, step) + ".tmp";
    // A later checkpoint ends the wait, too, in case this one has been written or pruned in between.
    while (!has_ended(process) && access(temporary.c_str(), F_OK) != 0 && run.newest() < step) usleep(50);
    usleep(moment);
    kill(process, SIGKILL);
  };
}

// Kills the run `lives` times around its checkpoints, and compares its end with that of a run of its own kind that was
// never killed.
void require_survival(const TemporaryFolder& folder, const std::string& text, Arguments model, int lives) {
  model.push_back("--no-early-stop");  // an early stop would come before the last step
  const ResumableRun killed(folder, "killed", 1'000'000, text, model);
  const RandomStream stream(11, RandomPurpose::test);
  std::uint64_t draw = 0;
  for (int life = 0; life < lives; ++life) {
    // Each life is one or two steps longer, and ends between the first byte of a checkpoint and the middle of the next
    // step.
    const int target = killed.newest() + 1 + static_cast<int>(stream.below(draw++, 2));
    RunOptions options;
    options.meanwhile = killer(killed, target, static_cast<useconds_t>(stream.below(draw++, 6000)));
    const Finished finished = killed.go_on(options);
    INFO("killed at step " << target << ": " << finished.err);
    REQUIRE(finished.exit_code == 128 + SIGKILL);
    // Nothing was ever torn or missing: existing files are whole, and the files that pointers name exist.
    for (const char* trouble : {"falling back", "which is missing", "best points to"})
      REQUIRE(finished.err.find(trouble) == std::string::npos);
  }
  const int steps = killed.newest() + 3;
  REQUIRE(steps > lives / 4);
  require_ok(run_maki({"train", "--resume", killed.path, "--max-steps", std::to_string(steps)}));
  const ResumableRun straight(folder, "straight", steps, text, model);
  require_ok(straight.go_on());
  REQUIRE(read_text(checkpoint(killed.path, steps)) == read_text(checkpoint(straight.path, steps)));
  REQUIRE(killed.files() == straight.files());
  for (const char* pointer : {"/checkpoints/last", "/checkpoints/best"}) {
    REQUIRE(read_text(killed.path + pointer) == read_text(straight.path + pointer));
  }
  REQUIRE(measured(read_text(killed.path + "/metrics.jsonl")) == measured(read_text(straight.path + "/metrics.jsonl")));
}

}  // namespace

TEST_CASE("a run killed around every checkpoint, at any moment, ends with the same bytes") {
  const TemporaryFolder folder;
  require_survival(folder, small_text(), kSmall, 40);
}

TEST_CASE("every kind of model: a run killed around its checkpoints ends with the same bytes") {
  for (const SmallKind& kind : every_kind()) {
    INFO(kind.name());
    const TemporaryFolder folder;
    require_survival(folder, kind.corpus_text, kind.options, 8);
  }
}
