// maki generate RUN [--prompt TEXT | --prompt-file F | -] [options]
#include "train/app/verbs/generate.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>

#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/number.h"
#include "train/app/flags.h"
#include "train/app/progress.h"
#include "train/app/reading.h"
#include "train/app/run_corpus.h"
#include "train/app/verbs.h"

namespace maki {
namespace {

struct GenerateVerbOptions {
  explicit GenerateVerbOptions(const Command& its_command) : command(its_command) {}
  Command command;
  ReadingOptions reading;
  std::string input, prompt_file, prompts;
  SamplingOptions sampling;
  std::vector<std::string> sampling_names;
  ContinueTexts texts;
  TranslateOptions translate;
  AdaptingOptions adapting;
  std::optional<std::string> prompt;
  bool interactive = false, remember = false;
};

// The prompt from standard input, without the newline at its end, which shells and terminals add unasked.
std::string prompt_from_stdin() {
  ask("type the prompt, then press Enter and Ctrl-D");
  std::string prompt;
  append_input("-", prompt);
  if (prompt.ends_with("\r\n")) {
    prompt.resize(prompt.size() - 2);
  } else if (prompt.ends_with('\n')) {
    prompt.pop_back();
  }
  return prompt;
}

// The texts that the model reads, and with which those that it writes begin.
std::vector<std::string> read_prompts(const GenerateVerbOptions& o, const Tokenizer& tokenizer) {
  std::vector<std::string> prompts;
  if (o.prompts.empty()) {
    prompts.push_back(!o.prompt_file.empty() ? read_prompt_file(o.prompt_file, o.reading.run)
                      : o.input == "-"       ? prompt_from_stdin()
                                             : o.prompt.value_or(""));
  } else {
    std::istringstream lines(read_prompt_file(o.prompts, o.reading.run));
    read_lines(lines, std::numeric_limits<std::size_t>::max(), prompts);
    check<CorpusError>(!prompts.empty(), "{}: has no lines; write one prompt per line", o.prompts);
  }
  for (std::string& prompt : prompts) prompt = encodable_text(tokenizer, prompt, "prompt", o.reading.policy());
  return prompts;
}

void check_options(const GenerateVerbOptions& o) {
  check_adapting(o.command, "generate", o.adapting.adapt);
  check(!o.adapting.adapt || o.reading.with.empty(),
        "generate: --adapt lets one model learn, and --with writes with several; omit one of them");
  check(!o.adapting.adapt || o.prompts.empty(),
        "generate: --adapt learns one prompt before continuing it; give it with --prompt or --prompt-file");
  check(o.input.empty() || o.input == "-",
        "generate: only - (prompt from standard input) may follow RUN; got {}; pass a text with --prompt", o.input);
  const int prompts = (o.prompt ? 1 : 0) + (o.prompt_file.empty() ? 0 : 1) + (o.prompts.empty() ? 0 : 1) +
                      (o.input.empty() ? 0 : 1) + (o.interactive ? 1 : 0);
  check(prompts <= 1, "generate: use only one of --prompt, --prompt-file, --prompts, --interactive and -");
  check(!o.remember || o.interactive, "remember: is for the prompts of --interactive; add it, or omit --remember");
  check(!o.remember || o.texts.samples == 1,
        "samples: must be 1 for a conversation that goes on; got {}; omit it, or --remember", o.texts.samples);
  check_sampling(o.sampling, o.texts, o.reading.json);
}

// Throws Error if options were given that do not apply to this kind of model, which "translates" or "continues a text".
void check_apply(const GenerateVerbOptions& o, const std::vector<std::string>& others, const char* does) {
  const std::vector<std::string> given = o.command.given_among(others);
  const bool one = given.size() == 1;
  check(given.empty(), "generate: {} {} not apply to a model that {}, such as {}; omit {}", fmt::join(given, ", "),
        one ? "does" : "do", does, o.reading.run, one ? "it" : "them");
}

// Throws Error if --overflow was given for a model whose context window never fills up.
void check_overflow(const GenerateVerbOptions& o, const LoadedModel& loaded) {
  if (o.command.given_among({"--overflow"}).empty()) return;
  check(loaded.generator().start(1)->capacity() < State::kUnlimitedCapacity,
        "overflow: has no effect, because the state of {} holds a text of any length; omit --overflow", o.reading.run);
}

// A model that reads sources: every line of the prompt is one.
int generate_targets(const GenerateVerbOptions& o, const LoadedModel& loaded) {
  check_apply(o, o.sampling_names, "translates");
  check(o.texts.text.generate.max_tokens > 0,
        "max_tokens: must be at least 1 for a model that translates; got 0; raise it, or omit the option");
  TranslateLines how{.unknown = o.reading.policy(), .json = o.reading.json, .options = o.translate};
  // A translation ends by itself. One that is cut is not the one that eval measures, and only JSON says so.
  how.options.max_tokens = loaded.state.config.block_size;
  if (o.command.given("--max-tokens"))
    how.options.max_tokens = std::min(how.options.max_tokens, o.texts.text.generate.max_tokens);
  // With greedy search, only the scores that --json prints depend on it.
  if (!o.reading.json) check_search(o.command, "generate", o.translate.beam_size);
  if (o.prompt || !o.prompt_file.empty()) {
    const std::string text = o.prompt ? *o.prompt : read_prompt_file(o.prompt_file, o.reading.run);
    std::istringstream lines(o.prompt && text.empty() ? "\n" : text);  // a prompt is a line, also an empty one
    return translate_lines(loaded, lines, how);
  }
  ask("type a line to translate it; end with Ctrl-D");
  std::ios::sync_with_stdio(false);  // else std::cin has no buffer, and does not know what can be read at once
  return translate_lines(loaded, std::cin, how);
}

int generate(GenerateVerbOptions& o) {
  check_options(o);
  LoadedModel loaded = o.reading.open();
  loaded.generator();  // throws if there is nothing to generate with
  o.reading.average(loaded);
  to_stderr("{}, step {}\n", loaded.path, loaded.state.step);
  if (task_rule(loaded.state.config).reads_source()) return generate_targets(o, loaded);
  check_apply(o, {"--beam", "--length-penalty"}, "continues a text");
  check_overflow(o, loaded);
  o.texts.json = o.reading.json;
  if (o.adapting.adapt) o.texts.adapt = o.adapting.options;
  if (o.interactive) {
    finish_sampling(o.sampling, *loaded.tokenizer, o.texts, /*announce=*/false);
    return continue_interactively(loaded, o.texts, o.reading.policy(), o.remember);
  }
  const std::vector<std::string> prompts = read_prompts(o, *loaded.tokenizer);
  finish_sampling(o.sampling, *loaded.tokenizer, o.texts, /*announce=*/true);
  return continue_texts(loaded, prompts, o.texts);
}

void add_prompt_options(const Command& command, GenerateVerbOptions& o) {
  o.reading.add_run(command, "run directory or .maki file");
  o.reading.add_with(command);
  command.add_argument("INPUT", o.input, "prompt: - reads it from standard input, without a trailing newline");
  command.add_option("--prompt", o.prompt, "TEXT", "text to continue");
  command.add_option(
      "--prompt-file", o.prompt_file, "FILE",
      "file with the text to continue, or - (standard input); every byte counts, including a final newline");
  command.add_option("--prompts", o.prompts, "FILE",
                     "file with a text to continue in each line, or - (standard input)");
  command.add_flag("--interactive", o.interactive,
                   "read prompts one after the other and continue each; \\ at the end of a line continues the prompt");
  command.add_flag(
      "--remember", o.remember,
      "continue what has been said so far, as much as the context holds, not each prompt alone; an empty prompt "
      "goes on, /clear forgets; needs --interactive");
}

}  // namespace

void add_generate(const Command& command) {
  const auto o = std::make_shared<GenerateVerbOptions>(command);
  add_prompt_options(command, *o);
  command.add_number("--max-tokens", o->texts.text.generate.max_tokens, 0, kMaxCount,
                     "maximum number of tokens to generate (a translation without this option has no limit but "
                     "block_size)");
  o->sampling_names = add_sampling_options(command, o->sampling, o->texts);
  o->sampling_names.insert(o->sampling_names.end(), {"--prompts", "--interactive", "--remember", "--adapt"});
  add_search_options(command, o->translate.beam_size, o->translate.length_penalty);
  o->adapting.add(command,
                  "let the network, but no n-gram counts, learn the prompt while reading it; the run is left as it is");
  add_weights_option(command, o->reading.weights);
  o->reading.add_options(command, "the prompt",
                         "print one line of JSON per text: prompt, text, seed, speed and the reason why it ended");
  command.set_action([o] { return generate(*o); });
}

}  // namespace maki
