// Progress beside other text: how a line is shortened, how long a run still takes, and lines that stay in place.
#include "train/app/progress.h"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>

#include "tests/train/captured_stderr.h"
#include "train/app/terminal.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Draws the line before the first of `total` steps, of which `step` were done before.
void draw_line(const std::vector<std::string>& facts, std::int64_t step = 0, std::int64_t total = 100) {
  Progress(
      total, /*plain=*/false, [&] { return facts; }, [](const TerminalSize&) { return std::vector<std::string>(); })
      .advance(step);
}

// The line that is drawn first, without the sequences that place it.
std::string line_in(const std::string& drawn) {
  REQUIRE(drawn.starts_with("\033[K"));
  return drawn.substr(3, drawn.find('\r') - 3);  // what follows is drawn at the end
}

std::string first_line(const std::vector<std::string>& facts) {
  return line_in(written_to_stderr([&] { draw_line(facts); }));
}

std::string empty_bar(int columns) {
  std::string bar;
  for (int i = 0; i < columns; ++i) bar += locale_has_utf8() ? "░" : ".";
  return bar;
}

}  // namespace

TEST_CASE(
    "a bar takes what its facts leave of 79 columns, from 24 down to 4, and facts are left out from the last on") {
  const auto fact = [](std::size_t columns) { return std::string(columns, 'x'); };
  REQUIRE(first_line({}) == empty_bar(24) + " 0/100");
  REQUIRE(first_line({"loss 1", "fast"}) == empty_bar(24) + " 0/100  loss 1  fast");
  REQUIRE(first_line({fact(47)}) == empty_bar(24) + " 0/100  " + fact(47));
  REQUIRE(first_line({fact(48)}) == empty_bar(23) + " 0/100  " + fact(48));
  REQUIRE(first_line({fact(67)}) == empty_bar(4) + " 0/100  " + fact(67));
  REQUIRE(first_line({fact(68)}) == "0/100  " + fact(68));
  REQUIRE(first_line({fact(72)}) == "0/100  " + fact(72));
  REQUIRE(first_line({"loss 1", fact(65)}) == empty_bar(24) + " 0/100  loss 1");
}

TEST_CASE("a terminal that is too narrow for the number of steps gets a percentage, and a narrower one nothing") {
  const std::pair<int, std::string> lines[] = {{14, empty_bar(4) + " 30/1,000"},
                                               {13, "30/1,000"},
                                               {9, "30/1,000"},
                                               {8, empty_bar(4) + " 3%"},
                                               {7, "3%"},
                                               {3, "3%"},
                                               {2, ""}};
  for (const auto& [columns, line] : lines) {
    INFO(columns << " columns");
    const auto drawn = written_to_terminal(columns, 24, [] { draw_line({"loss 1"}, 30, 1000); });
    if (!drawn) return;
    REQUIRE(line_in(*drawn) == line);
  }
}

TEST_CASE("durations are rounded to seconds, and from an hour on cut to minutes") {
  REQUIRE(format_duration(-3) == "0s");
  REQUIRE(format_duration(0.4) == "0s");
  REQUIRE(format_duration(59.4) == "59s");
  REQUIRE(format_duration(59.6) == "1m 00s");
  REQUIRE(format_duration(3599.4) == "59m 59s");
  REQUIRE(format_duration(3659) == "1h 00m");
  REQUIRE(format_duration(3720) == "1h 02m");
  REQUIRE(format_duration(100 * 3600.0) == "100h 00m");
}

TEST_CASE("the locale for characters is LC_ALL, else LC_CTYPE, else LANG, where one that is empty counts as not set") {
  const std::pair<std::vector<const char*>, bool> locales[] = {{{"C", "en_US.UTF-8", "en_US.UTF-8"}, false},
                                                               {{"ja_JP.utf8", "C", "C"}, true},
                                                               {{"", "C.UTF-8", "C"}, true},
                                                               {{"", "", "de_DE.utf-8"}, true},
                                                               {{"", "POSIX", "C.UTF-8"}, false},
                                                               {{"", "", ""}, false}};
  const char* const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
  std::vector<std::optional<std::string>> before;
  for (const char* const name : names) {
    const char* const value = std::getenv(name);
    before.push_back(value == nullptr ? std::nullopt : std::optional<std::string>(value));
  }
  for (const auto& [values, utf8] : locales) {
    for (std::size_t i = 0; i < 3; ++i) setenv(names[i], values[i], 1);
    CHECK(locale_has_utf8() == utf8);
  }
  for (std::size_t i = 0; i < 3; ++i) before[i] ? setenv(names[i], before[i]->c_str(), 1) : unsetenv(names[i]);
}

TEST_CASE("the time left is that of the steps so far, for each of those that are left") {
  const auto begin = std::chrono::steady_clock::now();
  const std::string said = written_to_stderr([] {
    Progress progress(
        2, /*plain=*/true, [] { return std::vector<std::string>{"loss 1"}; }, nullptr);
    for (const int step : {0, 1, 2}) progress.report(step);
  });
  const std::chrono::duration<double> most = std::chrono::steady_clock::now() - begin;
  const std::string half = "step 1/2  loss 1  ";
  INFO(said);
  REQUIRE(said.starts_with("step 0/2  loss 1\n" + half));
  REQUIRE(said.ends_with("s left\nstep 2/2  loss 1\n"));
  REQUIRE(std::stoi(said.substr(said.find(half) + half.size())) <= std::llround(most.count()));
}

TEST_CASE("of lines that stay in place only those that differ are drawn again, and all on a terminal of another size") {
  const auto drawn = written_to_terminal(60, 20, [] {
    LiveLines lines;
    lines.show({"a line of 20 columns", "two", "three"});
    lines.show({"a line of 20 columns", "2", "three"});
    lines.show({"a line of 20 columns", "2", "three"});
    lines.print_above({"above", "both"});
    lines.show({"a line of 20 columns", "2", "3"});
    set_terminal_size(STDERR_FILENO, 12, 20);  // on which the first line takes two rows
    lines.show({"short", "2", "3"});
    lines.show({"short"});
  });
  if (!drawn) return;
  const std::string first = "\033[Ka line of 20 columns\n";
  REQUIRE(*drawn == first + "\033[Ktwo\n\033[Kthree\r" +                                     //
                        "\033[2A\r\n\033[K2\n\r" +                                           //
                        "\033[2A\r\033[Jabove\nboth\n" + first + "\033[K2\n\033[Kthree\r" +  //
                        "\033[2A\r\n\n\033[K3\r" +                                           //
                        "\033[3A\r\033[J\033[Kshort\n\033[K2\n\033[K3\r" +                   //
                        "\033[2A\r\033[J\033[Kshort\r" +                                     //
                        "\r\033[J\033[Kshort\r\n");
}
