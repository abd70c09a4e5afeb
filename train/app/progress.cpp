#include "train/app/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fmt/ranges.h>
#include <unistd.h>
#include <utility>

#include "data/io/number.h"

namespace maki {
namespace {

constexpr std::size_t kMaxBarColumns = 24, kMinBarColumns = 4;  // a shorter bar is left out
constexpr std::chrono::milliseconds kRedrawInterval{500};       // lines that change more often cannot be read
constexpr int kMinIdlePerDrawing = 200;  // times the time that a drawing took: at most 0.5 % of the time for drawings

bool quiet_now = false;

std::string bar(std::size_t width, std::int64_t step, std::int64_t total) {
  const auto filled = total > 0 ? static_cast<std::int64_t>(width) * step / total : static_cast<std::int64_t>(width);
  std::string text;
  const bool utf8 = locale_has_utf8();
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(width); ++i)
    text += i < filled ? (utf8 ? "█" : "#") : (utf8 ? "░" : ".");
  return text;
}

}  // namespace

void keep_quiet(bool quiet) { quiet_now = quiet; }
bool is_quiet() { return quiet_now; }

void write_to_stderr(std::string_view text) {
  if (quiet_now) return;
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void ask(const std::string& line) {
  if (isatty(STDIN_FILENO) != 0) say(line);
}

void warn(const std::string& line) {
  const bool quiet = std::exchange(quiet_now, false);
  say(line);
  quiet_now = quiet;
}

std::string format_duration(double seconds) {
  const auto s = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds)));
  if (s >= 3600) return fmt::format("{}h {:02}m", s / 3600, s / 60 % 60);
  if (s >= 60) return fmt::format("{}m {:02}s", s / 60, s % 60);
  return fmt::format("{}s", s);
}

double per_second(double count, double seconds) {
  const double rate = count / seconds;
  return seconds > 0 && std::isfinite(rate) ? rate : 0;
}

std::string Progress::remaining() const {
  const std::int64_t done = step_ - first_step_;
  if (done == 0 || step_ >= total_) return "";
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  return fmt::format("{} left",
                     format_duration(seconds / static_cast<double>(done) * static_cast<double>(total_ - step_)));
}

// If the line is too wide, it is shortened in this order: the bar gets shorter and then disappears; the facts
// disappear, beginning with the last; the step count becomes a percentage; and the percentage disappears. The time left
// stays longest.
std::string Progress::line(std::size_t columns, const std::vector<std::string>& facts) const {
  std::vector<std::string> parts{fmt::format("{}/{}", with_separators(step_), with_separators(total_))};
  parts.insert(parts.end(), facts.begin(), facts.end());
  const std::string left = remaining();
  if (!left.empty()) parts.push_back(left);
  const std::size_t least = left.empty() ? 1 : 2;
  const auto text = [&] { return fmt::format("{}", fmt::join(parts, "  ")); };
  while (text().size() > columns && parts.size() > least) parts.erase(parts.end() - static_cast<std::ptrdiff_t>(least));
  if (text().size() > columns) parts[0] = fmt::format("{}%", total_ > 0 ? 100 * step_ / total_ : 100);
  if (text().size() > columns) parts.erase(parts.begin());
  const std::string words = text().substr(0, columns);
  if (words.size() + 1 + kMinBarColumns > columns) return words;
  return bar(std::min(kMaxBarColumns, columns - words.size() - 1), step_, total_) + " " + words;
}

void Progress::draw() {
  if (finished_) return;
  const Clock::time_point begin = Clock::now();
  const TerminalSize size = terminal_size(STDERR_FILENO);
  const std::size_t columns = size.columns - 1;
  std::vector<std::string> facts = facts_(), lines = picture_(size);
  if (lines.empty()) {
    lines = {line(columns, facts)};
  } else {
    const auto text = [&] { return fmt::format("{}", fmt::join(facts, "  ")); };
    while (text().size() > columns) facts.pop_back();
    lines.insert(lines.begin(), {line(columns, {}), text()});
  }
  lines_.show(lines);
  const Clock::time_point end = Clock::now();
  draw_next_ = end + std::max<Clock::duration>(kRedrawInterval, kMinIdlePerDrawing * (end - begin));
}

void Progress::advance(std::int64_t step) {
  if (first_step_ < 0) {
    first_step_ = step;
    start_ = Clock::now();
  }
  step_ = step;
  if (!plain_ && Clock::now() >= draw_next_) draw();
}

void Progress::report(std::int64_t step) {
  advance(step);
  if (!plain_) return;
  const std::string left = remaining();
  to_stderr("step {}/{}  {}{}{}\n", step, total_, fmt::format("{}", fmt::join(facts_(), "  ")),
            left.empty() ? "" : "  ", left);
}

void Progress::print_lines(std::vector<std::string> lines) {
  for (std::string& line : lines) {
    line = escape_unprintable(line);
    if (plain_) say(line);
  }
  if (!plain_) lines_.print_above(lines);
}

void Progress::finish() {
  if (!plain_ && first_step_ >= 0) draw();
  finished_ = true;
  lines_.finish();
}

}  // namespace maki
