// What a person sees of a run, on stderr: one line that rewrites itself on a terminal, plain lines otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fmt/format.h>
#include <string>
#include <utility>

namespace maki {

/// Everything that goes to stderr goes through here: a terminal or a pipe that went away must not stop a run.
template <class... Args>
void to_stderr(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

/// "1h 02m", "3m 07s", "12s".
std::string duration(double seconds);
/// "1,115,394".
std::string grouped(std::int64_t number);

class Progress {
 public:
  /// A bar for `total` steps; `plain` prints a line a report in its place (a pipe, a file, NO_COLOR is not enough).
  Progress(std::int64_t total, bool plain);
  ~Progress();

  /// `facts` is what there is to say beside the bar: loss, speed.
  void report(std::int64_t step, const std::string& facts);
  /// A line that stays, above the bar.
  void say(const std::string& line);
  /// Ends the bar's line, if there is one.
  void finish();

 private:
  std::string bar(std::int64_t step) const;
  std::string remaining(std::int64_t step);

  std::int64_t total_, first_step_ = -1;
  bool plain_, open_ = false;
  std::string last_;
  std::chrono::steady_clock::time_point start_;
};

/// Is stderr a terminal that a bar can be drawn on?
bool stderr_is_terminal();

}  // namespace maki
