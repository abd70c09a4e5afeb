// What the terminal behind stderr can show, and lines that stay in place on it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace maki {

/// Whether stderr is a terminal on which lines can be drawn again: TERM is set, and not to "dumb".
bool is_stderr_terminal();
/// The name of the locale for a category such as LC_CTYPE: LC_ALL, else that category, else LANG; empty if none is set.
std::string locale_name(const char* category);
/// Whether the locale for characters has UTF-8.
bool locale_has_utf8();

struct TerminalSize {
  std::size_t columns = 80, rows = 24;
  bool operator==(const TerminalSize&) const = default;
};
/// The size of the terminal behind this descriptor; `otherwise` if it is none or does not say.
TerminalSize terminal_size(int descriptor, const TerminalSize& otherwise = {});

/// A block of lines at the end of what stderr shows. It is drawn again in place: only lines that differ, or everything
/// after the size of the terminal has changed. Requires: is_stderr_terminal(), and nothing else is written to stderr
/// while the block is shown.
class LiveLines {
 public:
  ~LiveLines() { finish(); }

  /// Shows these lines instead of those shown before. Requires: each occupies fewer columns than the terminal has.
  void show(const std::vector<std::string>& lines);
  /// Prints lines that stay above the block.
  void print_above(const std::vector<std::string>& lines);
  /// Leaves the block as it is; what is printed next begins below it.
  void finish();

 private:
  std::string to_first_line(const TerminalSize& size) const;
  std::string drawing(const std::vector<std::string>& lines, const TerminalSize& size);

  std::vector<std::string> shown_;
  TerminalSize size_{};  // when they were drawn
};

}  // namespace maki
