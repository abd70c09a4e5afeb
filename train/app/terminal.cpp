#include "train/app/terminal.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <sys/ioctl.h>
#include <unistd.h>

#include "data/io/utf8.h"
#include "train/app/progress.h"

namespace maki {
namespace {

constexpr const char *kToLineStart = "\r", *kEraseLine = "\033[K", *kEraseBelow = "\033[J";

std::string up(std::size_t rows) { return rows == 0 ? "" : "\033[" + std::to_string(rows) + "A"; }

}  // namespace

bool is_stderr_terminal() {
  const char* const term = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && term != nullptr && std::strcmp(term, "dumb") != 0;
}

std::string locale_name(const char* category) {
  for (const char* const name : {"LC_ALL", category, "LANG"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return "";
}

bool locale_has_utf8() {
  std::string locale = locale_name("LC_CTYPE");
  std::ranges::transform(locale, locale.begin(), [](unsigned char c) { return std::tolower(c); });
  return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
}

TerminalSize terminal_size(int descriptor, const TerminalSize& otherwise) {
  TerminalSize size = otherwise;
  winsize known{};
  if (ioctl(descriptor, TIOCGWINSZ, &known) != 0) return size;
  if (known.ws_col > 1) size.columns = known.ws_col;
  if (known.ws_row > 0) size.rows = known.ws_row;
  return size;
}

// The cursor is at the beginning of the last line, where a terminal shows ^C without breaking the line. A terminal that
// has become narrower has broken long lines into several rows.
std::string LiveLines::to_first_line(const TerminalSize& size) const {
  std::size_t rows = 0;
  for (std::size_t i = 0; i + 1 < shown_.size(); ++i) {
    const auto width = static_cast<std::size_t>(display_width(shown_[i]));
    rows += std::max<std::size_t>(1, (width + size.columns - 1) / size.columns);
  }
  return up(rows) + kToLineStart;
}

std::string LiveLines::drawing(const std::vector<std::string>& lines, const TerminalSize& size) {
  const bool all = size != size_ || lines.size() != shown_.size();
  if (!all && lines == shown_) return "";
  std::string text;
  if (!shown_.empty()) text = to_first_line(size) + (all ? kEraseBelow : "");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) text += "\n";
    if (all || lines[i] != shown_[i]) text += kEraseLine + lines[i];
  }
  shown_ = lines;
  size_ = size;
  return text.empty() ? text : text + kToLineStart;
}

void LiveLines::show(const std::vector<std::string>& lines) {
  write_to_stderr(drawing(lines, terminal_size(STDERR_FILENO)));
}

void LiveLines::print_above(const std::vector<std::string>& lines) {
  const TerminalSize size = terminal_size(STDERR_FILENO);
  const std::vector<std::string> block = shown_;
  std::string text = block.empty() ? "" : to_first_line(size) + kEraseBelow;
  for (const std::string& line : lines) text += line + "\n";
  shown_.clear();
  write_to_stderr(text + drawing(block, size));
}

// Everything is drawn once more, because a key may have left its mark on a line.
void LiveLines::finish() {
  if (shown_.empty()) return;
  size_ = {0, 0};
  write_to_stderr(drawing(std::vector(shown_), terminal_size(STDERR_FILENO)) + "\n");
  shown_.clear();
}

}  // namespace maki
