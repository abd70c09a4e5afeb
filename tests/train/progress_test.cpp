// Progress beside other text: how a line is shortened, and how long a run still takes.
#include "train/app/progress.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

#include "tests/files.h"

using namespace maki;
using namespace maki::tests;

namespace {

// What is written to stderr meanwhile, which is no terminal: it counts as one of 80 columns.
std::string written_to_stderr(const std::function<void()>& meanwhile) {
  const TemporaryFolder folder;
  const std::string log = folder / "log";
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO);
  REQUIRE(std::freopen(log.c_str(), "w", stderr) != nullptr);
  meanwhile();
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  return read_bytes(log);
}

// The line that is drawn before the first of 100 steps, without the sequences that place it.
std::string first_line(const std::vector<std::string>& facts) {
  std::string text = written_to_stderr([&] {
    Progress(
        100, /*plain=*/false, [&] { return facts; }, [](const TerminalSize&) { return std::vector<std::string>(); })
        .advance(0);
  });
  REQUIRE(text.starts_with("\033[K"));
  return text.substr(3, text.find('\r') - 3);  // what follows is drawn at the end
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
