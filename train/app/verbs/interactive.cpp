#include <clocale>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <langinfo.h>
#include <optional>
#include <string_view>
#include <termios.h>
#include <unistd.h>

#include "train/app/verbs/generate.h"
#ifdef MAKI_HAVE_LIBEDIT
#include <editline/readline.h>
#endif

#include "data/io/error.h"
#include "train/app/interrupt.h"
#include "train/app/progress.h"
#include "train/app/reading.h"
#include "train/app/spelling.h"

namespace maki {
namespace {

#ifdef MAKI_HAVE_LIBEDIT
termios before_editing;

// tcsetattr() may be called from a signal handler.
void restore_terminal() { tcsetattr(STDIN_FILENO, TCSANOW, &before_editing); }

// Whether libedit reads UTF-8: it drops every byte that belongs to no character of the locale. Without a locale, or
// with one that is not installed, it gets one that has UTF-8.
bool edits_utf8() {
  const char* const set = std::setlocale(LC_CTYPE, "");
  const std::string_view name = set == nullptr ? "C" : set;
  if (name == "C" || name == "POSIX") std::setlocale(LC_CTYPE, "C.UTF-8");
  return std::string_view(nl_langinfo(CODESET)) == "UTF-8";
}

std::optional<std::string> edited_line(const char* prompt) {
  char* const typed = readline(prompt);
  if (typed == nullptr) return std::nullopt;
  std::string line = typed;
  std::free(typed);
  if (!line.empty()) add_history(line.c_str());
  return line;
}
#endif

// Lines that a user types, or that a pipe brings. If standard input and stderr are terminals and maki was built with
// libedit, lines can be edited and earlier ones fetched back with the arrow keys, unless the locale has no UTF-8.
// Prompts go to stderr, and only if standard input is a terminal.
class LineReader {
 public:
  LineReader() {
#ifdef MAKI_HAVE_LIBEDIT
    editing_ = terminal_ && isatty(STDERR_FILENO) != 0 && edits_utf8();
    if (!editing_) return;
    rl_outstream = stderr;
    // libedit would pass a signal on to the whole process group.
    rl_catch_signals = 0;
    if (tcgetattr(STDIN_FILENO, &before_editing) == 0) restore_at_interrupt(restore_terminal);
#endif
  }

  // Whether a user types the lines.
  bool terminal() const { return terminal_; }
  // The next line, as next_line() reads it; nullopt at the end of the input.
  std::optional<std::string> read(const char* prompt) const {
#ifdef MAKI_HAVE_LIBEDIT
    if (editing_) return edited_line(prompt);
#endif
    if (terminal_) to_stderr("{}", prompt);
    std::string line;
    if (!next_line(std::cin, line)) return std::nullopt;
    return line;
  }

 private:
  bool terminal_ = isatty(STDIN_FILENO) != 0;
#ifdef MAKI_HAVE_LIBEDIT
  bool editing_ = false;
#endif
};

// The next lines up to one that does not end with a backslash, joined by newlines.
std::optional<std::string> read_prompt(const LineReader& reader) {
  std::optional<std::string> line = reader.read("> ");
  if (!line) return line;
  std::string prompt = *line;
  while (prompt.ends_with('\\')) {
    prompt.back() = '\n';
    line = reader.read("| ");
    if (!line) break;
    prompt += *line;
  }
  return prompt;
}

// What has been said, with the end of its last line, which stdout has got as well. A vocabulary may have no newline.
std::string ended_line(const Tokenizer& tokenizer, std::string said) {
  if (!said.ends_with('\n')) said += '\n';
  return std::string(known_text(tokenizer, {said}, Unknown::skip).pieces.front());
}

}  // namespace

int continue_interactively(const LoadedModel& loaded, ContinueTexts how, Unknown unknown, bool remember) {
  const LineReader reader;
  if (reader.terminal()) {
    to_stderr("type a text to continue it; a line that ends with \\ goes on in the next one; {}end with Ctrl-D\n",
              remember ? "/clear forgets what was said; " : "");
  }
  how.separate = true;
  std::string conversation;
  if (remember) how.conversation = &conversation;
  Sampling& sampling = how.text.generate.sampling;
  for (;; ++sampling.seed) {
    const std::optional<std::string> prompt = read_prompt(reader);
    if (!prompt) break;
    if (remember && *prompt == "/clear") {
      conversation.clear();
      continue;
    }
    try {
      const std::string text = encodable_text(*loaded.tokenizer, *prompt, "prompt", unknown);
      if (draws_tokens(sampling)) to_stderr("seed {}\n", sampling.seed);
      const int code = continue_texts(loaded, {text}, how);
      if (remember) conversation = ended_line(*loaded.tokenizer, conversation);
      if (interrupted() != 0 && interrupted() != SIGINT) return code;
      forget_interrupt();
    } catch (const CheckpointError&) {
      throw;
    } catch (const Error& error) {
      to_stderr("maki: {}\n", spelled(error.what()));
    }
  }
  if (reader.terminal()) to_stderr("\n");
  return 0;
}

}  // namespace maki
