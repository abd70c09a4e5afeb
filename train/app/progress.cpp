#include "train/app/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "data/io/number.h"

namespace maki {
namespace {

constexpr std::size_t kMaxBarColumns = 24, kMinBarColumns = 4;  // a shorter bar is left out
constexpr std::chrono::milliseconds kRedrawInterval{100};       // often enough for the eye, too seldom to cost time

bool quiet_now = false;

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) return size.ws_col;
  return 80;
}

std::string bar(std::size_t width, std::int64_t step, std::int64_t total) {
  const auto filled = total > 0 ? static_cast<std::int64_t>(width) * step / total : static_cast<std::int64_t>(width);
  std::string text;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(width); ++i) text += i < filled ? "█" : "░";
  return text;
}

}  // namespace

void keep_quiet(bool quiet) { quiet_now = quiet; }
bool is_quiet() { return quiet_now; }

bool is_stderr_terminal() {
  const char* const term = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && term != nullptr && std::strcmp(term, "dumb") != 0;
}

std::string format_duration(double seconds) {
  const auto s = static_cast<std::int64_t>(std::max(0.0, seconds) + 0.5);
  if (s >= 3600) return fmt::format("{}h {:02}m", s / 3600, s / 60 % 60);
  if (s >= 60) return fmt::format("{}m {:02}s", s / 60, s % 60);
  return fmt::format("{}s", s);
}

double per_second(double count, double seconds) {
  const double rate = count / seconds;
  return seconds > 0 && std::isfinite(rate) ? rate : 0;
}

ProgressBar::ProgressBar(std::int64_t total, bool plain) : total_(total), plain_(plain) {}
ProgressBar::~ProgressBar() { finish(); }

std::string ProgressBar::remaining(std::int64_t step) const {
  const std::int64_t done = step - first_step_;
  if (done == 0 || step >= total_) return "";
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  return fmt::format("{} left",
                     format_duration(seconds / static_cast<double>(done) * static_cast<double>(total_ - step)));
}

// If the line is too wide, it is shortened in this order: the bar gets shorter and then disappears; the facts
// disappear, beginning with the last; the step count becomes a percentage; and the percentage disappears. The time left
// stays longest.
std::string ProgressBar::line(std::int64_t step, std::size_t columns) const {
  std::vector<std::string> parts{fmt::format("{}/{}", step, total_)};
  parts.insert(parts.end(), facts_.begin(), facts_.end());
  const std::string left = remaining(step);
  if (!left.empty()) parts.push_back(left);
  const std::size_t least = left.empty() ? 1 : 2;
  const auto text = [&] { return fmt::format("{}", fmt::join(parts, "  ")); };
  while (text().size() > columns && parts.size() > least) parts.erase(parts.end() - static_cast<std::ptrdiff_t>(least));
  if (text().size() > columns) parts[0] = fmt::format("{}%", total_ > 0 ? 100 * step / total_ : 100);
  if (text().size() > columns) parts.erase(parts.begin());
  const std::string words = text().substr(0, columns);
  if (words.size() + 1 + kMinBarColumns > columns) return words;
  return bar(std::min(kMaxBarColumns, columns - words.size() - 1), step, total_) + " " + words;
}

void ProgressBar::draw(std::int64_t step) {
  drawn_ = line(step, terminal_width() - 1);
  drawn_at_ = Clock::now();
  to_stderr("\r\033[K{}", drawn_);
  std::fflush(stderr);
  open_ = true;
}

void ProgressBar::advance(std::int64_t step) {
  const bool first = first_step_ < 0;
  if (first) {
    first_step_ = step;
    start_ = Clock::now();
  }
  if (!plain_ && (first || Clock::now() - drawn_at_ > kRedrawInterval)) draw(step);
}

void ProgressBar::update(std::int64_t step, const std::vector<std::string>& facts) {
  advance(step);
  facts_ = facts;
  if (!plain_) return draw(step);
  const std::string left = remaining(step);
  to_stderr("step {}/{}  {}{}{}\n", step, total_, fmt::format("{}", fmt::join(facts, "  ")), left.empty() ? "" : "  ",
            left);
}

void ProgressBar::print_line(const std::string& line) {
  if (!open_) {
    to_stderr("{}\n", line);
    return;
  }
  to_stderr("\r\033[K{}\n\r\033[K{}", line, drawn_);
  std::fflush(stderr);
}

void ProgressBar::finish() {
  if (open_) to_stderr("\n");
  open_ = false;
}

}  // namespace maki
