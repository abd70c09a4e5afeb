// The built-in exercises: every answer is right, sizes are what was asked for, and the lines never change.
#include "data/builtin/exercises.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "autograd/core/check.h"
#include "data/dataset/pairs.h"
#include "data/io/hash.h"
#include "tests/catch.h"
#include "tests/data/require_refused.h"

using namespace maki;
using maki::tests::require_refused;

namespace {

struct Line {
  std::string source, target;
};

std::vector<Line> lines_of(const std::string& text) {
  std::vector<Line> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t tab = text.find('\t', begin), end = text.find('\n', begin);
    if (tab >= end || end >= text.size()) FAIL("not a line: " << text.substr(begin, 80));
    lines.push_back({text.substr(begin, tab - begin), text.substr(tab + 1, end - tab - 1)});
    begin = end + 1;
  }
  return lines;
}

std::int64_t number(const std::string& digits) {
  const bool plain = !digits.empty() && std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  const bool shortest = digits == "0" || !digits.starts_with('0');
  return plain && shortest ? std::stoll(digits) : -1;
}

bool is_letters(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= 'a' && c <= 'z'; });
}

std::string reversed(std::string text) {
  std::ranges::reverse(text);
  return text;
}

}  // namespace

TEST_CASE("copy and reverse: answers are right, all lengths and letters are equally frequent") {
  for (const std::int64_t size : {1, 4, 20}) {
    const std::vector<Line> copy = lines_of(make_exercise(Exercise::copy, size));
    const std::vector<Line> reverse = lines_of(make_exercise(Exercise::reverse, size));
    REQUIRE(std::ssize(copy) == kMaxExerciseLines);
    REQUIRE(copy.size() == reverse.size());
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(size) + 1), letters(26);
    std::size_t wrong = 0, total = 0;
    for (std::size_t i = 0; i < copy.size(); ++i) {
      const std::string& source = copy[i].source;
      wrong += is_letters(source) && std::ssize(source) <= size && copy[i].target == source &&
                       reverse[i].source == source && reverse[i].target == reversed(source)
                   ? 0
                   : 1;
      ++lengths.at(source.size());
      for (const char c : source) ++letters.at(static_cast<std::size_t>(c - 'a'));
      total += source.size();
    }
    REQUIRE(wrong == 0);
    REQUIRE(lengths[0] == 0);
    // Within six standard deviations of the mean.
    const auto near = [](std::int64_t count, double trials, double classes) {
      const double mean = trials / classes;
      return std::abs(static_cast<double>(count) - mean) < 6 * std::sqrt(mean);
    };
    for (std::int64_t n = 1; n <= size; ++n)
      REQUIRE(near(lengths[static_cast<std::size_t>(n)], 100'000, static_cast<double>(size)));
    for (const std::int64_t count : letters) REQUIRE(near(count, static_cast<double>(total), 26));
  }
}

TEST_CASE("addition: sums are right, all pairs of numbers differ, and numbers have up to the given digits") {
  for (const std::int64_t size : {1, 2, 3, 5, 9}) {
    std::int64_t limit = 1;
    for (std::int64_t i = 0; i < size; ++i) limit *= 10;
    for (const bool backwards : {false, true}) {
      const std::vector<Line> lines =
          lines_of(make_exercise(backwards ? Exercise::addition_backwards : Exercise::addition, size));
      REQUIRE(std::ssize(lines) == (size == 1 ? 100 : size == 2 ? 10'000 : kMaxExerciseLines));
      std::size_t wrong = 0;
      std::set<std::pair<std::int64_t, std::int64_t>> seen;
      double sum_a = 0, sum_b = 0;
      std::int64_t most = 0;
      for (const Line& line : lines) {
        const std::size_t plus = line.source.find('+');
        if (plus == std::string::npos) FAIL("no sum: " << line.source);
        const std::int64_t a = number(line.source.substr(0, plus)), b = number(line.source.substr(plus + 1));
        const std::int64_t sum = number(backwards ? reversed(line.target) : line.target);
        wrong += a >= 0 && a < limit && b >= 0 && b < limit && sum == a + b ? 0 : 1;
        seen.emplace(a, b);
        sum_a += static_cast<double>(a);
        sum_b += static_cast<double>(b);
        most = std::max({most, a, b});
      }
      REQUIRE(wrong == 0);
      REQUIRE(seen.size() == lines.size());
      const auto count = static_cast<double>(lines.size()), whole = static_cast<double>(limit);
      REQUIRE(std::abs(sum_a / count / whole - 0.5) < 0.06);
      REQUIRE(std::abs(sum_b / count / whole - 0.5) < 0.06);
      REQUIRE(most >= limit - limit / 10);
    }
  }
}

// A run identifies its corpus by these bytes.
TEST_CASE("the exercises are the same bytes on every machine and with every compiler") {
  const auto hash = [](Exercise exercise, std::int64_t size) { return hash128_hex(make_exercise(exercise, size)); };
  CHECK(hash(Exercise::copy, 4) == "eaae3242f99d9b0bf55e0601eef63c6a");
  CHECK(hash(Exercise::copy, 20) == "aa60eb7d3e4a73feecdd24c90cf8ff70");
  CHECK(hash(Exercise::reverse, 20) == "74e2177d3ba27bd828382c21a6271dd5");
  CHECK(hash(Exercise::addition, 3) == "c9e5c6c04cd3436646148104389a1e5a");
  CHECK(hash(Exercise::addition_backwards, 5) == "b55eebba550f8e9a5dba28f067d3b1e6");
}

TEST_CASE("exercises by name, with their usual size or a given one") {
  const auto text = [](const std::string& source) { return load_corpus({source}).text; };
  REQUIRE(text("@reverse:8") == make_exercise(Exercise::reverse, 8));
  REQUIRE(text("@reverse") == make_exercise(Exercise::reverse, 20));
  REQUIRE(text("@copy") == make_exercise(Exercise::copy, 20));
  REQUIRE(text("@addition") == make_exercise(Exercise::addition, 3));
  REQUIRE(text("@addition-backwards") == make_exercise(Exercise::addition_backwards, 5));
  REQUIRE(text("@addition-backwards:2") == make_exercise(Exercise::addition_backwards, 2));
  const Corpus corpus = load_corpus({"@addition:2"});
  REQUIRE(read_pairs(corpus).size() == 10'000);
  REQUIRE(corpus.sources == std::vector<std::string>{"@addition:2"});
  REQUIRE_FALSE(corpus.entropy_per_char);
}

TEST_CASE("exercises that do not exist, and sizes out of range, are refused") {
  const auto load = [](const std::string& source) { return [source] { load_corpus({source}); }; };
  require_refused(load("@reverses"),
                  {"@reverses", "@stories, @stories-ja, @copy, @reverse, @addition, ", "./@reverses"});
  for (const std::string size : {"0", "-1", "501", "x", "", " 8", "8 ", "1e1", "99999999999999999999"})
    require_refused(load("@reverse:" + size), {"@reverse:" + size, "letters", "between 1 and 500"});
  require_refused(load("@addition:10"), {"@addition:10", "digits", "between 1 and 9"});
  REQUIRE(load_corpus({"@copy:500"}).characters > 0);
  for (const Exercise letters : {Exercise::copy, Exercise::reverse}) {
    REQUIRE_THROWS_WITH(make_exercise(letters, 0), ContainsSubstring("between 1 and 500; got 0"));
    REQUIRE_THROWS_AS(make_exercise(letters, 501), Error);
  }
  for (const Exercise digits : {Exercise::addition, Exercise::addition_backwards}) {
    REQUIRE_THROWS_WITH(make_exercise(digits, 10), ContainsSubstring("between 1 and 9; got 10"));
    REQUIRE_THROWS_AS(make_exercise(digits, 0), Error);
  }
}
