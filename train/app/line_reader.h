// Lines that a user types, or that a pipe brings.
#pragma once

#include <optional>
#include <string>

namespace maki {

/// If standard input and stderr are terminals and maki was built with libedit, lines can be edited and earlier ones
/// fetched back with the arrow keys. Prompts go to stderr, and only if standard input is a terminal.
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
