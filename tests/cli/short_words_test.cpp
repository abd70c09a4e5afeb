// What is typed most often: the program's name alone, one letter for an option, and what must not happen by accident.
#include <algorithm>
#include <filesystem>
#include <regex>

#include "tests/cli/require_refused.h"

using namespace maki::tests;

TEST_CASE("the program's name alone prints its help, and the word version its version") {
  const Finished alone = require_ok(run_maki({}));
  REQUIRE(alone.out == require_ok(run_maki({"--help"})).out);
  REQUIRE_THAT(alone.out, ContainsSubstring("train") && ContainsSubstring("generate"));
  const std::string version = require_ok(run_maki({"--version"})).out;
  REQUIRE(require_ok(run_maki({"version"})).out == version);
  // The commit is that of a git checkout.
  REQUIRE(std::regex_match(version, std::regex("maki [0-9]+\\.[0-9]+\\.[0-9]+( \\([0-9a-f]{7,}\\))?\n")));
}

TEST_CASE("one letter is enough: -o is --out, and -q prints nothing but the last line and errors") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  const Finished quiet = require_ok(run_maki(Arguments{"train", corpus, "-o", run, "-q", "--max-steps", "2"} + kSmall));
  REQUIRE(std::filesystem::exists(run + "/config.toml"));
  REQUIRE(std::ranges::count(quiet.err, '\n') == 1);
  REQUIRE_THAT(quiet.err, ContainsSubstring("maki generate"));
  require_refused(run_maki(Arguments{"train", corpus, "-o", run, "-q", "--max-steps", "2"} + kSmall), 2, {run});
  const std::string help = require_ok(run_maki({"train", "--help"})).out;
  for (const char* const option : {"-o,--out ", "-q,--quiet", "-n,--max-steps "})
    REQUIRE_THAT(help, ContainsSubstring(option));
  // An option stands under the last title before it.
  const std::vector<std::string> titles = {"\nCommon options:\n", "\nModel (", "\nTraining (", "\nRun ("};
  for (const auto& [option, title] : {std::pair{"--n-layer", 0},
                                      {"--learning-rate", 0},
                                      {"-o,--out", 0},
                                      {"--config", 0},
                                      {"--resume", 0},
                                      {"--ffn-width", 1},
                                      {"--dropout", 2},
                                      {"--momentum", 2},
                                      {"--keep-last", 3}}) {
    INFO(option);
    const std::size_t at = help.find(std::string("\n  ") + option + " ");
    REQUIRE(at != std::string::npos);
    for (std::size_t i = 0; i < titles.size(); ++i)
      REQUIRE((help.find(titles[i]) < at) == (static_cast<int>(i) <= title));
  }
}

TEST_CASE("a run that would need more memory than there is is refused with the figures, and nothing of it is made") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  const Arguments large = {"--batch-size", "1000000", "--block-size", "400", "--max-steps", "2",
                           "--n-layer",    "1",       "--n-embd",     "64",  "--out",       run};
  require_refused(run_maki(Arguments{"train", corpus} + large), 2,
                  {"memory: ", "available", "--batch-size", "--force"});
  REQUIRE_FALSE(std::filesystem::exists(run));
  require_refused(run_maki({"bench", "--batch-size", "1000000", "--block-size", "4096", "--n-layer", "1"}), 2,
                  {"memory: "});
  require_refused(run_maki({"train", corpus, "--model", "encoder", "--batch-size", "1000000", "--block-size", "400",
                            "--minutes", "1s"}),
                  2, {"memory"});
}

TEST_CASE("an interactive conversation is remembered if that is asked for, until it is cleared") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "2"} + kSmall));
  RunOptions said;
  said.input = "the maki\nreel\n/clear\nreel\n";
  const auto answers = [&](const Arguments& more) {
    return require_ok(run_maki(Arguments{"generate", run, "--interactive", "--temperature", "0", "--max-tokens", "3",
                                         "--overflow", "recompute"} +
                                   more,
                               said))
        .out;
  };
  const auto text = [&](const std::string& prompt) {
    return require_ok(run_maki({"generate", run, "--prompt", prompt, "--temperature", "0", "--max-tokens", "3"})).out;
  };
  const auto line = [](const std::string& words) { return words.ends_with('\n') ? words : words + '\n'; };
  const std::string first = line(text("the maki")), both = line(text(first + "reel")), alone = line(text("reel"));
  REQUIRE(both != first + alone);
  REQUIRE(answers({"--remember"}) == both + alone);
  require_refused(run_maki({"generate", run, "--interactive", "--remember", "-n", "2"}), 2, {"samples: must be 1"});
  require_refused(run_maki({"generate", run, "--remember"}), 2, {"remember"});
}
