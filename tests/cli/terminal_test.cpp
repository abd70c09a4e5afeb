// What a user sees, on a terminal and elsewhere.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "data/io/utf8.h"
#include "tests/catch.h"
#include "tests/cli/small_run.h"

using namespace maki::tests;

namespace {

// The successive contents of the progress bar.
std::vector<std::string> bars(const std::string& shown) {
  const std::string clear = "\r\033[K";
  std::vector<std::string> lines;
  for (std::size_t at = shown.find(clear); at != std::string::npos;) {
    const std::size_t begin = at + clear.size();
    at = shown.find(clear, begin);
    const std::string line = shown.substr(begin, at == std::string::npos ? at : at - begin);
    if (line.find('\n') == std::string::npos) lines.push_back(line);
  }
  return lines;
}

bool any_holds(const std::vector<std::string>& lines, const std::string& text) {
  for (const std::string& line : lines) {
    if (line.find(text) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("on a terminal generated text ends with a newline, in a file it is unchanged") {
  if (!has_terminals()) return;
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  REQUIRE(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "2"} + kSmall).exit_code == 0);
  const Arguments generate = {"generate", run, "--prompt", "the maki", "--max-tokens", "0"};
  RunOptions terminal;
  terminal.terminal_columns = 80;
  terminal.output_to_terminal = true;
  const auto shown = [&](const std::string& prompt) {
    const Finished finished = run_maki({"generate", run, "--prompt", prompt, "--max-tokens", "0"}, terminal);
    REQUIRE(finished.exit_code == 0);
    return finished.err;
  };
  // The report about the text begins on a line of its own.
  REQUIRE_THAT(shown("the maki"), ContainsSubstring("\nthe maki\n0 tokens in "));
  REQUIRE_THAT(shown("the maki\n"), ContainsSubstring("\nthe maki\n0 tokens in "));
  REQUIRE(run_maki(generate).out == "the maki");
}

TEST_CASE("a reader that closes the pipe ends the program without a message") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  REQUIRE(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "2"} + kSmall).exit_code == 0);
  RunOptions gone;
  gone.output_is_closed_pipe = true;
  for (const Arguments& verb :
       {Arguments{"generate", run, "--max-tokens", "100"}, Arguments{"inspect", run}, Arguments{"eval", run},
        Arguments{"tokenizer", "encode", run, corpus}, Arguments{"--help"}}) {
    const Finished finished = run_maki(verb, gone);
    INFO(verb.front() << ": " << finished.err);
    REQUIRE(finished.exit_code == 141);
    REQUIRE(finished.err.find("maki: ") == std::string::npos);
  }
}

TEST_CASE("the bar fits the terminal, drops the remaining time last, and is shown from the first step on") {
  if (!has_terminals()) return;
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  for (const int columns : {12, 20, 40, 60, 80, 200}) {
    RunOptions terminal;
    terminal.terminal_columns = columns;
    const Finished finished = run_maki(
        Arguments{"train", corpus, "--out", folder / fmt::format("run-{}", columns), "--max-steps", "40"} + kSmall,
        terminal);
    INFO(columns << " columns: " << finished.err);
    REQUIRE(finished.exit_code == 0);
    const std::vector<std::string> lines = bars(finished.err);
    REQUIRE(lines.size() > 4);
    for (const std::string& line : lines) {
      INFO(line);
      REQUIRE(maki::count_code_points(line) < columns);
      REQUIRE(!line.empty());
    }
    REQUIRE(any_holds({lines.front()}, "0/40"));
    REQUIRE(any_holds(lines, columns < 20 ? "0s" : "0s left"));
    if (columns >= 40) REQUIRE(any_holds(lines, "loss"));
    if (columns >= 60) REQUIRE(any_holds(lines, "tokens/s"));
    if (columns >= 60) REQUIRE(any_holds(lines, "\u2588"));
  }
}

TEST_CASE("reports use singular and plural correctly, and printed commands can be typed") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  const Arguments one = {"--n-layer",    "1", "--n-head",  "1", "--n-embd",       "8", "--block-size", "1",
                         "--batch-size", "1", "--threads", "1", "--val-fraction", "0"};
  const Finished single = run_maki(Arguments{"train", corpus, "--out", folder / "one", "--max-steps", "1"} + one);
  INFO(single.err);
  REQUIRE(single.exit_code == 0);
  for (const char* words : {"1 layer,", "1 head,", "context of 1 token:", "1 step of 1 token on 1 thread (",
                            "done: 1 step in", "the warmup of 100 steps does not end within 1 step"}) {
    REQUIRE_THAT(single.err, ContainsSubstring(words));
  }
  const std::string run = folder / "it's my run";
  const Arguments train = {"train", corpus, "--out", run, "--max-steps", "2"};
  const Finished first = run_maki(train + one + Arguments{"--warmup-steps", "1"});
  INFO(first.err);
  REQUIRE(first.exit_code == 0);
  REQUIRE_THAT(first.err, !ContainsSubstring("warmup") && ContainsSubstring("2 steps of 1 token"));
  const std::string typed = "'" + (folder / "it'\\''s my run") + "'";
  REQUIRE_THAT(first.err, ContainsSubstring("to generate text: maki generate " + typed));
  REQUIRE_THAT(run_maki(train + one).err, ContainsSubstring("continue it with --resume " + typed));
}

TEST_CASE("the memory that a run needs is reported before it is allocated, and its duration after three steps") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), log = folder / "log";
  const Finished huge = run_maki({"train", corpus, "--out", folder / "huge", "--n-layer", "1000", "--n-head", "1",
                                  "--n-embd", "1000000", "--threads", "1", "--max-steps", "100"});
  INFO(huge.err);
  REQUIRE(huge.exit_code == 2);
  REQUIRE_THAT(huge.err, ContainsSubstring("12,000,") && ContainsSubstring("parameters\n") &&
                             ContainsSubstring(" passes over the text\n") && ContainsSubstring("memory about ") &&
                             ContainsSubstring(" are available; lower --n-embd (now 1000000)"));
  const Finished planned = run_maki(
      {"train", corpus, "--out", folder / "huge", "--n-layer", "1000", "--n-embd", "1000000", "--threads", "1"});
  INFO(planned.err);
  REQUIRE(planned.exit_code == 2);
  REQUIRE_THAT(planned.err, ContainsSubstring("plan: the smallest model that is considered needs about "));
  RunOptions options;
  options.error_file = log;
  options.meanwhile = [&](pid_t process) {
    while (text_so_far(log).find("more than a day") == std::string::npos) usleep(1000);
    kill(process, SIGINT);
  };
  const Finished slow = run_maki(
      Arguments{"train", corpus, "--out", folder / "slow"} + kSmall + Arguments{"--max-steps", "1000000000"}, options);
  REQUIRE(slow.exit_code == 130);
  REQUIRE_THAT(read_text(log), ContainsSubstring(" ms per step: about ") && !ContainsSubstring("the run needs about "));
}
