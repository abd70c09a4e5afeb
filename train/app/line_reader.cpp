#include "train/app/line_reader.h"

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <termios.h>
#include <unistd.h>
#ifdef MAKI_HAVE_LIBEDIT
#include <editline/readline.h>
#endif

#include "train/app/interrupt.h"
#include "train/app/progress.h"

namespace maki {

#ifdef MAKI_HAVE_LIBEDIT
namespace {

termios before_editing;

// tcsetattr() may be called from a signal handler.
void restore_terminal() { tcsetattr(STDIN_FILENO, TCSANOW, &before_editing); }

std::optional<std::string> edited_line(const char* prompt) {
  char* const typed = readline(prompt);
  if (typed == nullptr) return std::nullopt;
  std::string line = typed;
  std::free(typed);
  if (!line.empty()) add_history(line.c_str());
  return line;
}

}  // namespace
#endif

LineReader::LineReader() : terminal_(isatty(STDIN_FILENO) != 0), editing_(false) {
#ifdef MAKI_HAVE_LIBEDIT
  editing_ = terminal_ && isatty(STDERR_FILENO) != 0;
  if (!editing_) return;
  std::setlocale(LC_CTYPE, "");  // libedit needs to know that a character may have several bytes
  rl_outstream = stderr;
  // libedit would pass a signal on to the whole process group.
  rl_catch_signals = 0;
  if (tcgetattr(STDIN_FILENO, &before_editing) == 0) restore_at_interrupt(restore_terminal);
#endif
}

std::optional<std::string> LineReader::read(const char* prompt) {
#ifdef MAKI_HAVE_LIBEDIT
  if (editing_) return edited_line(prompt);
#endif
  if (terminal_) to_stderr("{}", prompt);
  std::string line;
  if (!std::getline(std::cin, line)) return std::nullopt;
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

}  // namespace maki
