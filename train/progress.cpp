#include "train/progress.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace maki {
namespace {

constexpr int kBarWidth = 24;

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 80;
}

}  // namespace

bool stderr_is_terminal() {
  const char* const term = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && term != nullptr && std::strcmp(term, "dumb") != 0;
}

std::string duration(double seconds) {
  const auto s = static_cast<std::int64_t>(std::max(0.0, seconds) + 0.5);
  if (s >= 3600) return fmt::format("{}h {:02}m", s / 3600, s / 60 % 60);
  if (s >= 60) return fmt::format("{}m {:02}s", s / 60, s % 60);
  return fmt::format("{}s", s);
}

std::string grouped(std::int64_t number) {
  const std::string digits = fmt::format("{}", number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::size_t left = digits.size() - i;
    if (i > 0 && left % 3 == 0 && digits[i - 1] != '-') text += ',';
    text += digits[i];
  }
  return text;
}

Progress::Progress(std::int64_t total, bool plain)
    : total_(total), plain_(plain), start_(std::chrono::steady_clock::now()) {}
Progress::~Progress() { finish(); }

std::string Progress::bar(std::int64_t step) const {
  const auto filled = static_cast<std::size_t>(total_ > 0 ? kBarWidth * step / total_ : kBarWidth);
  std::string text;
  for (std::size_t i = 0; i < kBarWidth; ++i) text += i < filled ? "█" : "░";
  return text;
}

std::string Progress::remaining(std::int64_t step) {
  if (first_step_ < 0) {
    first_step_ = step;
    start_ = std::chrono::steady_clock::now();
  }
  const std::int64_t done = step - first_step_;
  if (done == 0 || step >= total_) return "";
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  return fmt::format("  {} left", duration(seconds / static_cast<double>(done) * static_cast<double>(total_ - step)));
}

void Progress::report(std::int64_t step, const std::string& facts) {
  const std::string left = remaining(step);
  if (plain_) {
    to_stderr("step {}/{}  {}{}\n", step, total_, facts, left);
    return;
  }
  // The bar's blocks are three bytes and one column each; the rest is ASCII.
  std::string line = fmt::format("{} {}/{}  {}{}", bar(step), step, total_, facts, left);
  const std::size_t columns = line.size() - 2 * kBarWidth, width = terminal_width();
  if (columns > width - 1) line.resize(line.size() - (columns - (width - 1)));
  last_ = "\r\033[K" + line;
  to_stderr("{}", last_);
  std::fflush(stderr);
  open_ = true;
}

void Progress::say(const std::string& line) {
  if (!open_) {
    to_stderr("{}\n", line);
    return;
  }
  to_stderr("\r\033[K{}\n{}", line, last_);
  std::fflush(stderr);
}

void Progress::finish() {
  if (open_) to_stderr("\n");
  open_ = false;
}

}  // namespace maki
