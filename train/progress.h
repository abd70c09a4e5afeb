// What a person sees of a run, on stderr: one line that rewrites itself on a terminal, plain lines otherwise.
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

#include "data/printable.h"
#include "data/shell_word.h"

namespace maki {

namespace detail {

// What to_stderr() formats in the place of an argument.
template <class T>
decltype(auto) shown(const T& argument) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return printable(argument);
  } else {
    return (argument);
  }
}

}  // namespace detail

/// Everything that goes to stderr goes through here: a terminal or a pipe that went away must not stop a run. What the
/// format itself says is ours; what is put into it may come from a path, an option or a file, and is made printable(),
/// so a message of several lines is several calls.
template <class... Args>
void to_stderr(fmt::format_string<const Args&...> format, const Args&... args) {
  const std::tuple<decltype(detail::shown(args))...> shown(detail::shown(args)...);
  const std::string text = std::apply(
      [&](const auto&... each) { return fmt::vformat(fmt::string_view(format), fmt::make_format_args(each...)); },
      shown);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

/// "1h 02m", "3m 07s", "12s".
std::string duration(double seconds);
/// A rate for people to read: 0 where no time has passed, as on a clock that stands still.
double per_second(double count, double seconds);
/// "1,115,394".
std::string grouped(std::int64_t number);
/// "1 thread", "2,000 steps".
std::string counted(std::int64_t number, const std::string& noun);

class Progress {
 public:
  /// A bar for `total` steps; `plain` prints a line a report in its place (a pipe, a file, NO_COLOR is not enough).
  Progress(std::int64_t total, bool plain);
  ~Progress();

  /// `facts` is what there is to say beside the bar, the most important first.
  void report(std::int64_t step, const std::vector<std::string>& facts);
  /// Only moves the bar, and not at every call; the first starts the clock.
  void advance(std::int64_t step);
  /// A line that stays, above the bar.
  void say(const std::string& line);
  /// Ends the bar's line, if there is one.
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

/// Is stderr a terminal that a bar can be drawn on?
bool stderr_is_terminal();

}  // namespace maki
