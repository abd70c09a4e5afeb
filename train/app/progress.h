// The progress of a run as users see it on stderr: lines that stay in place on a terminal, plain lines otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "data/io/printable.h"
#include "train/app/terminal.h"

namespace maki {

namespace detail {

// What to_stderr() formats instead of an argument: strings are made printable.
template <class T>
decltype(auto) shown(const T& argument) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return escape_unprintable(argument);
  } else {
    return (argument);
  }
}

}  // namespace detail

/// Whether to_stderr() prints nothing (--quiet); false when the program starts.
void keep_quiet(bool quiet);
bool is_quiet();

/// Writes text to stderr as it is, unless maki is to keep quiet. Ignores errors, because a closed terminal or pipe must
/// not stop a run.
void write_to_stderr(std::string_view text);

/// Everything that is printed to stderr goes through this function, except for the line that libedit edits and the
/// lines that stay in place. Arguments may come from a path, an option or a file, so strings pass through
/// escape_unprintable(), which escapes newlines as well; a message of several lines takes several calls.
template <class... Args>
void to_stderr(fmt::format_string<const Args&...> format, const Args&... args) {
  const std::tuple<decltype(detail::shown(args))...> shown(detail::shown(args)...);
  write_to_stderr(std::apply(
      [&](const auto&... each) { return fmt::vformat(fmt::string_view(format), fmt::make_format_args(each...)); },
      shown));
}
/// A line of its own.
inline void say(const std::string& line) { to_stderr("{}\n", line); }
/// say(), where standard input is a terminal, which otherwise waits without a word: what to type.
void ask(const std::string& line);
/// say() that keep_quiet() does not silence, for what changes a result. Ranks other than 0 must not call it.
void warn(const std::string& line);

/// A duration for display, rounded to seconds or cut to minutes: "1h 02m", "3m 07s", "12s". Negative ones give "0s".
std::string format_duration(double seconds);
/// A rate for display: 0 if no time has passed, as on a clock that did not advance, or if the rate is not finite.
double per_second(double count, double seconds);

class Progress {
 public:
  /// What is shown beside the bar, the most important first: where the terminal is too narrow, the last are left out.
  using Facts = std::function<std::vector<std::string>()>;
  /// What a terminal of this size shows below the bar; lines of fewer columns than it has.
  using Picture = std::function<std::vector<std::string>(const TerminalSize&)>;

  /// The progress of `total` steps. `plain` prints one line per report() instead, for a pipe or a file. The functions
  /// are called when something is drawn or printed.
  Progress(std::int64_t total, bool plain, Facts facts, Picture picture)
      : total_(total), plain_(plain), facts_(std::move(facts)), picture_(std::move(picture)) {}

  bool is_plain() const { return plain_; }
  void set_total(std::int64_t total) { total_ = total; }
  /// Moves the bar. It is drawn at most twice per second, and so seldom that drawing takes less than 0.5 % of the time.
  /// The first call starts the clock for the time left.
  void advance(std::int64_t step);
  /// Moves the bar, or prints a line.
  void report(std::int64_t step);
  /// Prints lines that stay above the bar.
  void print_lines(std::vector<std::string> lines);
  void print_line(const std::string& line) { print_lines({line}); }
  /// Draws for the last time; what was drawn stays, and lines that are printed later stand below it.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void draw();
  std::string line(std::size_t columns, const std::vector<std::string>& facts) const;
  std::string remaining() const;

  std::int64_t total_, first_step_ = -1, step_ = 0;
  bool plain_, finished_ = false;
  Facts facts_;
  Picture picture_;
  LiveLines lines_;
  Clock::time_point start_, draw_next_;
};

}  // namespace maki
