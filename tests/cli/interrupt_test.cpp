// The first Ctrl-C takes effect wherever a verb is. If there is nothing to save, it ends the program at once.
#include <filesystem>
#include <fmt/format.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

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

TEST_CASE("an interrupt takes effect while standard input is read") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  REQUIRE(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "2"} + kSmall).exit_code == 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    RunOptions waiting = interrupted_by(signal);
    waiting.input = small_text();
    waiting.input_stays_open = true;
    require_interrupted(run_maki(Arguments{"train", "-", "--out", folder / "other"} + kSmall, waiting), signal);
    require_interrupted(run_maki({"eval", run, "-"}, waiting), signal);
    require_interrupted(run_maki({"generate", run, "-"}, waiting), signal);
  }
  REQUIRE_FALSE(std::filesystem::exists(folder / "other"));
}

TEST_CASE("an interrupt ends a text that is being generated, and what was written of it is reported") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "2"} + kSmall));
  for (const int signal : {SIGINT, SIGTERM}) {
    RunOptions options;
    options.output_file = folder / fmt::format("out-{}", signal);
    options.meanwhile = [&](pid_t process) {
      for (int i = 0; i < 60000 && text_so_far(options.output_file).size() < 100; ++i) usleep(1000);
      kill(process, signal);
    };
    const Finished finished =
        run_maki({"generate", run, "--prompt", "the", "--max-tokens", "1000000000", "-n", "2"}, options);
    INFO(finished.err);
    REQUIRE(finished.exit_code == 128 + signal);
    REQUIRE_THAT(finished.err, ContainsSubstring(" tokens per second\n") && !ContainsSubstring("maki: "));
    const std::string text = read_text(options.output_file);
    REQUIRE(text.starts_with("the"));
    REQUIRE(text.size() >= 100);
    REQUIRE_THAT(text, !ContainsSubstring("---"));  // the second text is not begun
  }
}

TEST_CASE("an interrupt ends gradcheck") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    require_interrupted(run_maki({"gradcheck", "--n-layer", "24"}, interrupted_by(signal)), signal);
  }
}

TEST_CASE("a hangup saves the last complete step, and is ignored if it was ignored at the start") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  const Arguments train = Arguments{"train", corpus, "--out", run} + kSmall;
  RunOptions hangup;
  hangup.meanwhile = [&](pid_t process) {
    for (int i = 0; i < 60000 && text_so_far(run + "/checkpoints/last").empty(); ++i) usleep(1000);
    kill(process, SIGHUP);
  };
  const Finished stopped = run_maki(train + Arguments{"--max-steps", "1000000"}, hangup);
  INFO(stopped.err);
  REQUIRE(stopped.exit_code == 128 + SIGHUP);
  REQUIRE_THAT(stopped.err, ContainsSubstring("--resume"));
  std::filesystem::remove_all(run);
  hangup.ignored_signal = SIGHUP;
  const Finished finished = run_maki(train + Arguments{"--max-steps", "300"}, hangup);
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
}

TEST_CASE("an interrupted run has a trained best or none, and reports how to resume it and how to generate with it") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string run = folder / fmt::format("run-{}", signal);
    RunOptions options;
    options.meanwhile = [&](pid_t process) {
      while (text_so_far(run + "/metrics.jsonl").find("\"train\"") == std::string::npos && !has_ended(process))
        usleep(1000);
      kill(process, signal);
    };
    const Finished finished =
        run_maki(Arguments{"train", corpus, "--out", run} + kSmall +
                     Arguments{"--max-steps", "1000000", "--log-interval", "1", "--eval-interval", "1000000"},
                 options);
    INFO(finished.err);
    REQUIRE(finished.exit_code == 128 + signal);
    REQUIRE_THAT(finished.err, ContainsSubstring("maki train --resume " + run + "\n") &&
                                   ContainsSubstring("maki generate " + run + "\n"));
    const std::string last = read_text(run + "/checkpoints/last");
    REQUIRE(last != "step-00000000.maki\n");
    // After Ctrl-C there is time for an evaluation, in a shutdown there is not.
    REQUIRE(std::filesystem::exists(run + "/checkpoints/best") == (signal == SIGINT));
    if (signal == SIGINT) {
      REQUIRE_THAT(finished.err, ContainsSubstring("evaluating") && ContainsSubstring("the best so far"));
      REQUIRE(read_text(run + "/checkpoints/best").starts_with(last.substr(0, last.size() - 1)));
    }
    const Finished generated = run_maki({"generate", run, "--max-tokens", "3"});
    INFO(generated.err);
    REQUIRE(generated.exit_code == 0);
    REQUIRE_THAT(generated.err, ContainsSubstring(last.substr(0, last.size() - 1)));
  }
}
