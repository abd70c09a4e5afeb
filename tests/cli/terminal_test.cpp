// What a user sees, on a terminal and elsewhere.
#include <algorithm>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "tests/catch.h"
#include "tests/cli/require_refused.h"
#include "tests/cli/screen.h"
#include "tests/cli/small_run.h"

using namespace maki::tests;

namespace {

// The index of the first row that contains the text, from row `first` on; -1 if there is none.
std::ptrdiff_t find_row(const std::vector<std::string>& rows, const std::string& text, std::size_t first = 0) {
  for (std::size_t i = first; i < rows.size(); ++i) {
    if (rows[i].find(text) != std::string::npos) return static_cast<std::ptrdiff_t>(i);
  }
  return -1;
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

TEST_CASE("a result that finds standard output closed is exit 4, and no file gets what was printed") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  RunOptions no_output{.before_program = [] { close(STDOUT_FILENO); }};
  require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "2"} + kSmall, no_output));
  for (const Arguments& verb :
       {Arguments{"generate", run, "--max-tokens", "10"}, Arguments{"inspect", run}, Arguments{"eval", run},
        Arguments{"tokenizer", "encode", run, corpus}, Arguments{"--help"}, Arguments{"--version"}})
    require_refused(run_maki(verb, no_output), 4, {"cannot write to standard output: "});
  REQUIRE(read_text(corpus) == small_text());
  const RunOptions nothing{.before_program = [] {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(stream);
  }};
  REQUIRE(run_maki({"eval", run}, nothing).exit_code == 4);
  REQUIRE(run_maki({"generate", run, "-"}, nothing).exit_code == 3);  // neither is there an input
  require_ok(run_maki({"train", "--resume", run, "--max-steps", "4"}, nothing));
}

TEST_CASE("progress stays in place on a terminal of any width: one bar, its facts and the curve remain at the end") {
  if (!has_terminals()) return;
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  for (const int columns : {12, 20, 40, 60, 80, 200}) {
    RunOptions terminal;
    terminal.terminal_columns = columns;
    terminal.environment = {"LC_ALL=C.UTF-8"};
    const Finished finished = run_maki(
        Arguments{"train", corpus, "--out", folder / fmt::format("run-{}", columns), "--max-steps", "40"} + kSmall,
        terminal);
    INFO(columns << " columns: " << finished.err);
    REQUIRE(finished.exit_code == 0);
    Screen screen(static_cast<std::size_t>(columns));
    screen.show(finished.err);
    const std::vector<std::string> rows = screen.rows();
    const std::ptrdiff_t bar = find_row(rows, "40/40");
    REQUIRE(bar > 0);
    const auto below = static_cast<std::size_t>(bar) + 1;
    REQUIRE(find_row(rows, "40/40", below) == -1);
    REQUIRE(find_row(rows, " 0/40") == -1);
    REQUIRE(find_row(rows, "done: ", below) > bar);
    const std::string& facts = rows[columns < 40 ? below - 1 : below];
    if (columns >= 40) REQUIRE(facts.find("loss ") == 0);
    if (columns >= 80) REQUIRE(facts.find("tokens/s") != std::string::npos);
    REQUIRE((find_row(rows, "\u2514", below) > bar) == (columns >= 40));
    if (columns >= 40) REQUIRE(find_row(rows, "\u2524", below) == bar + 2);
    if (columns >= 60) REQUIRE(rows[below - 1].find("\u2588") == 0);
  }
}

TEST_CASE("a terminal has a curve if at least as many rows are left for what is printed above it") {
  if (!has_terminals()) return;
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  for (const auto& [rows, height] : {std::pair{17, 0}, {18, 5}, {40, 10}}) {
    const RunOptions terminal{.terminal_columns = 80, .terminal_rows = rows, .environment = {"LC_ALL=C.UTF-8"}};
    const Finished finished = run_maki(
        Arguments{"train", corpus, "--out", folder / fmt::format("run-{}", rows), "--max-steps", "20"} + kSmall,
        terminal);
    INFO(rows << " rows: " << finished.err);
    REQUIRE(finished.exit_code == 0);
    Screen screen(80);
    screen.show(finished.err);
    const std::ptrdiff_t axis = find_row(screen.rows(), "\u2514");
    REQUIRE((axis >= 0) == (height > 0));
    if (height > 0) REQUIRE(axis - find_row(screen.rows(), "\u2524") == height);
  }
}

TEST_CASE("a terminal without UTF-8 gets ASCII, and a dumb one plain lines") {
  if (!has_terminals()) return;
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  const auto shown = [&](const char* name, const std::string& variable) {
    RunOptions terminal;
    terminal.terminal_columns = 80;
    terminal.environment = {"LC_ALL=C", variable};
    return run_maki(Arguments{"train", corpus, "--out", folder / name, "--max-steps", "40"} + kSmall, terminal).err;
  };
  const std::string ascii = shown("ascii", "LANG=en_US.UTF-8");  // LC_ALL counts
  REQUIRE_THAT(ascii, ContainsSubstring("\033[") && ContainsSubstring("#### 40/40") && ContainsSubstring("+----"));
  REQUIRE(std::ranges::all_of(ascii, [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
  const std::string dumb = shown("dumb", "TERM=dumb");
  REQUIRE_THAT(dumb, !ContainsSubstring("\033") && ContainsSubstring("step 40/40  loss "));
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
    while (text_so_far(log).find("more than a day") == std::string::npos && !has_ended(process)) usleep(1000);
    kill(process, SIGINT);
  };
  const Finished slow = run_maki(
      Arguments{"train", corpus, "--out", folder / "slow"} + kSmall + Arguments{"--max-steps", "1000000000"}, options);
  REQUIRE(slow.exit_code == 130);
  const std::string said = read_text(log), duration = " ms per step: about ";
  REQUIRE_THAT(said, ContainsSubstring(duration) && !ContainsSubstring("the run needs about "));
  REQUIRE(said.find(duration) == said.rfind(duration));
}
