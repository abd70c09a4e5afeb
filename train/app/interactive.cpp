#include "train/app/interactive.h"

#include <csignal>

#include "data/io/error.h"
#include "data/tokenizer/unknown_characters.h"
#include "train/app/encodable_text.h"
#include "train/app/interrupt.h"
#include "train/app/line_reader.h"
#include "train/app/progress.h"
#include "train/app/spelling.h"

namespace maki {
namespace {

// The next lines up to one that does not end with a backslash, joined by newlines.
std::optional<std::string> read_prompt(LineReader& reader) {
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

int continue_interactively(const LoadedModel& loaded, ContinueTexts how, const std::string& unknown, bool remember) {
  LineReader reader;
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
      if (sampling.temperature > 0) to_stderr("seed {}\n", sampling.seed);
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
