// What every help text promises: lines that fit, typed values, texts that are complete in themselves.
#include <algorithm>
#include <fmt/format.h>
#include <sstream>

#include "data/io/utf8.h"
#include "tests/catch.h"
#include "tests/cli/small_run.h"

using namespace maki::tests;

namespace {

std::vector<std::string> lines_of_help(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The text in one line, with single spaces, as a reader reads it.
std::string joined(const std::string& text) {
  std::istringstream stream(text);
  std::string all;
  for (std::string word; stream >> word;) all += ' ' + word;
  return all;
}

std::string help_of(const Arguments& verb, int columns) {
  RunOptions options;
  options.environment = {fmt::format("COLUMNS={}", columns)};
  return require_ok(run_maki(verb + Arguments{"--help"}, options)).out;
}

// The program, its verbs and their verbs, as their help lists them.
std::vector<Arguments> all_verbs(const Arguments& verb = {}) {
  std::vector<Arguments> all = {verb};
  bool below_title = false;
  for (const std::string& line : lines_of_help(help_of(verb, 80))) {
    if (below_title && line.size() > 2 && line.substr(0, 2) == "  " && line[2] != ' ')
      std::ranges::move(all_verbs(verb + Arguments{line.substr(2, line.find(' ', 2) - 2)}), std::back_inserter(all));
    below_title = line == "Verbs:" || (below_title && !line.empty());
  }
  return all;
}

bool is_one_word(const std::string& line) {
  const std::size_t word = line.find_first_not_of(' ');
  return word == std::string::npos || line.find(' ', word) == std::string::npos;
}

}  // namespace

TEST_CASE("no line of help is wider than COLUMNS, except for a single word, and descriptions begin in one column") {
  const std::vector<Arguments> verbs = all_verbs();
  REQUIRE(verbs.size() > 20);
  for (const Arguments& verb : verbs) {
    for (const int columns : {30, 80, 132}) {
      for (const std::string& line : lines_of_help(help_of(verb, columns))) {
        INFO(columns << " columns: " << line);
        REQUIRE((maki::count_code_points(line) <= columns || (columns < 80 && is_one_word(line))));
        REQUIRE((line.empty() || line.back() != ' '));
        const bool option = line.starts_with("  -");
        const std::size_t gap = option ? line.find("  ", 2) : std::string::npos;
        if (columns >= 80 && gap != std::string::npos) REQUIRE(line.find_first_not_of(' ', gap) == 28);
      }
    }
  }
}

TEST_CASE("every help text is complete in itself, and its values have types and defaults that people write") {
  for (const Arguments& verb : all_verbs()) {
    std::string help = joined(help_of(verb, 80));
    help.erase(0, help.find("ptions:"));  // the line "Usage" has several brackets
    for (const char* const words : {"the same", "The same", "likewise", "as above", " VALUE", " WHICH", "] [", "e-0"}) {
      INFO((verb.empty() ? "maki" : verb.back()) << ": " << words);
      REQUIRE(help.find(words) == std::string::npos);
    }
  }
  const std::string train = joined(help_of({"train"}, 80));
  for (const char* const words :
       {"--learning-rate RATE peak learning rate [0.001]", "--norm-epsilon NUMBER", "[1e-5]", "--position-base NUMBER",
        "rotary positions [10000]", "--n-layer N", "--dropout PROBABILITY", "-o,--out DIR", "--freeze GLOB",
        "--force begin even if", "--task next_token|translate|masked|classify task to learn",
        "[0.95 for muon, else 0]"}) {
    INFO(words);
    REQUIRE(train.find(words) != std::string::npos);
  }
}

TEST_CASE("help is as wide as the terminal, and has 80 columns where there is none and COLUMNS is no number") {
  const std::string usual = help_of({"train"}, 80);
  for (const char* const columns : {"COLUMNS", "COLUMNS=", "COLUMNS=0", "COLUMNS=-5", "COLUMNS=wide"}) {
    RunOptions options;
    options.environment = {columns};
    REQUIRE(require_ok(run_maki({"train", "--help"}, options)).out == usual);
  }
  if (!has_terminals()) return;
  RunOptions terminal;
  terminal.environment = {"COLUMNS"};
  terminal.terminal_columns = 50;
  terminal.output_to_terminal = true;
  std::string shown = run_maki({"train", "--help"}, terminal).err;
  std::erase(shown, '\r');
  REQUIRE(shown == help_of({"train"}, 50));
}
