// The progress of a run as users see it on stderr: one line that is redrawn on a terminal, plain lines otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "data/io/printable.h"

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

/// Everything that is printed to stderr goes through this function, except for the line that libedit edits. It ignores
/// write errors, because a closed terminal or pipe must not stop a run. Arguments may come from a path, an option or a
/// file, so strings pass through escape_unprintable(), which escapes newlines as well; a message of several lines takes
/// several calls.
template <class... Args>
void to_stderr(fmt::format_string<const Args&...> format, const Args&... args) {
  const std::tuple<decltype(detail::shown(args))...> shown(detail::shown(args)...);
  const std::string text = std::apply(
      [&](const auto&... each) { return fmt::vformat(fmt::string_view(format), fmt::make_format_args(each...)); },
      shown);
  if (!is_quiet()) std::fwrite(text.data(), 1, text.size(), stderr);
}
/// A line of its own.
inline void say(const std::string& line) { to_stderr("{}\n", line); }

/// A duration for display, rounded to seconds or cut to minutes: "1h 02m", "3m 07s", "12s". Negative ones give "0s".
std::string format_duration(double seconds);
/// A rate for display: 0 if no time has passed, as on a clock that did not advance, or if the rate is not finite.
double per_second(double count, double seconds);

class ProgressBar {
 public:
  /// A bar for `total` steps. `plain` prints one line per report instead, for a pipe or a file. (NO_COLOR is no reason
  /// for it, because the bar has no colours.)
  ProgressBar(std::int64_t total, bool plain);
  ~ProgressBar();

  void set_total(std::int64_t total) { total_ = total; }
  /// Draws the bar or prints a line, with `facts` beside it, the most important first: if the terminal is too narrow,
  /// the last ones are left out. advance() keeps showing them.
  void update(std::int64_t step, const std::vector<std::string>& facts);
  /// Moves the bar, redrawing it at most ten times per second; with `plain` it prints nothing. The first call of
  /// advance() or update() starts the clock for the time left.
  void advance(std::int64_t step);
  /// Prints a line that stays above the bar.
  void print_line(const std::string& line);
  /// Ends the line of the bar, if one is drawn.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void draw(std::int64_t step);
  std::string line(std::int64_t step, std::size_t columns) const;
  std::string remaining(std::int64_t step) const;

  std::int64_t total_, first_step_ = -1;
  bool plain_, open_ = false;
  std::string drawn_;
  std::vector<std::string> facts_;
  Clock::time_point start_, drawn_at_;
};

/// Whether stderr is a terminal on which a bar can be drawn: TERM is set, and not to "dumb".
bool is_stderr_terminal();

}  // namespace maki
