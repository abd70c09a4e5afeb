// Lines that a user types, or that a pipe brings.
#pragma once

#include <optional>
#include <string>

namespace maki {

/// On a terminal, lines can be edited and earlier ones fetched back with the arrow keys, if maki was built with
/// libedit. Prompts go to stderr, and to a terminal only.
class LineReader {
 public:
  LineReader();

  /// Whether a user types the lines.
  bool terminal() const { return terminal_; }
  /// The next line, without its end (a newline, or a carriage return and a newline); nullopt at the end of the input.
  std::optional<std::string> read(const char* prompt);

 private:
  bool terminal_, editing_;
};

}  // namespace maki
