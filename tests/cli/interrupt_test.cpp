// The first Ctrl-C is heard wherever a verb may be: where there is nothing to save, it ends the program at once.
#include <signal.h>
#include <sys/types.h>

#include "tests/catch.h"
#include "tests/cli/small_run.h"

using namespace maki::tests;

namespace {

RunOptions interrupted_by(int signal) {
  RunOptions options;
  options.meanwhile = [signal](pid_t process) {
    wait_for_handlers(process);
    kill(process, signal);
  };
  return options;
}

void require_interrupted(const Finished& finished, int signal) {
  INFO(finished.err);
  REQUIRE(finished.exit_code == 128 + signal);
  REQUIRE_THAT(finished.err, ContainsSubstring("maki: interrupted"));
  REQUIRE(finished.out.empty());
}

}  // namespace

TEST_CASE("an interrupt is heard while standard input is read") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  REQUIRE(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "2"} + kSmall).exit_code == 0);
  for (const int signal : {SIGINT, SIGTERM}) {
    RunOptions waiting = interrupted_by(signal);
    waiting.input = small_text();
    waiting.input_stays_open = true;
    require_interrupted(run_maki(Arguments{"train", "-", "--out", folder / "other"} + kSmall, waiting), signal);
    require_interrupted(run_maki({"eval", run, "-"}, waiting), signal);
    require_interrupted(run_maki({"generate", run, "-"}, waiting), signal);
  }
  REQUIRE_FALSE(std::filesystem::exists(folder / "other"));
}

TEST_CASE("an interrupt is heard by gradcheck") {
  for (const int signal : {SIGINT, SIGTERM}) {
    require_interrupted(run_maki({"gradcheck", "--n-layer", "24"}, interrupted_by(signal)), signal);
  }
}
