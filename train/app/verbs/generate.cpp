// maki generate RUN [--prompt TEXT | --prompt-file F | -] [options]
#include <algorithm>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <unistd.h>

#include "autograd/core/parallel.h"
#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/number.h"
#include "data/io/utf8.h"
#include "data/tokenizer/unknown_characters.h"
#include "train/app/adapt_options.h"
#include "train/app/choose_checkpoint.h"
#include "train/app/continue_texts.h"
#include "train/app/encodable_text.h"
#include "train/app/flags.h"
#include "train/app/interactive.h"
#include "train/app/progress.h"
#include "train/app/run_corpus.h"
#include "train/app/sampling_options.h"
#include "train/app/translate_lines.h"
#include "train/app/verbs.h"
#include "train/loop/generate_text.h"
#include "train/run/loaded_model.h"
#include "train/run/run_directory.h"

namespace maki {
namespace {

struct GenerateFlags {
  std::string run, input, prompt_file, prompts, checkpoint, unknown = "error";
  std::int64_t threads = 0;
  SamplingFlags sampling;
  ContinueTexts texts;
  TranslateOptions translate;
  AdaptFlags adapting;
  std::optional<std::string> prompt;
  bool interactive = false, remember = false, special = false, json = false;
  std::vector<std::string> text_only, translation_only;  // options given that apply to one kind of model only
};

// The prompt from standard input, without the newline at its end, which shells and terminals add unasked.
std::string prompt_from_stdin() {
  if (isatty(STDIN_FILENO) != 0) to_stderr("type the prompt, then press Enter and Ctrl-D\n");
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
std::vector<std::string> read_prompts(const GenerateFlags& o, const Tokenizer& tokenizer) {
  std::vector<std::string> prompts;
  if (o.prompts.empty()) {
    prompts.push_back(!o.prompt_file.empty() ? read_prompt_file(o.prompt_file, o.run)
                      : o.input == "-"       ? prompt_from_stdin()
                                             : o.prompt.value_or(""));
  } else {
    std::istringstream lines(read_prompt_file(o.prompts, o.run));
    prompts = read_lines(lines, std::numeric_limits<std::size_t>::max());
    check<CorpusError>(!prompts.empty(), "{}: has no lines; write one prompt per line", o.prompts);
  }
  for (std::string& prompt : prompts) prompt = encodable_text(tokenizer, prompt, "prompt", o.unknown);
  return prompts;
}

void check_options(const GenerateFlags& o) {
  parse_unknown_policy(o.unknown);
  o.adapting.check_given("generate");
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
  check_sampling(o.sampling, o.texts, o.json);
}

// A model that reads sources: every line of the prompt is one.
int generate_targets(const GenerateFlags& o, const LoadedModel& loaded) {
  check(o.text_only.empty(), "generate: {} does not apply to a model that translates, such as {}; omit it",
        fmt::join(o.text_only, ", "), o.run);
  TranslateLines how{.unknown = o.unknown, .json = o.json, .options = o.translate};
  how.options.max_tokens = std::min(o.texts.text.generate.max_tokens, loaded.state.config.block_size);
  if (o.prompt || !o.prompt_file.empty()) {
    std::istringstream lines(o.prompt ? *o.prompt : read_prompt_file(o.prompt_file, o.run));
    return translate_lines(loaded, lines, /*interactive=*/false, how);
  }
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal) to_stderr("type a line to translate it; end with Ctrl-D\n");
  return translate_lines(loaded, std::cin, terminal, how);
}

int generate(GenerateFlags& o) {
  check_options(o);
  if (o.threads != 0) set_threads(o.threads);
  LoadedModel loaded(choose_checkpoint(o.run, o.checkpoint));
  if (o.special) loaded.find_specials();
  loaded.generator();  // throws if there is nothing to generate with
  to_stderr("{}, step {}\n", loaded.path, loaded.state.step);
  if (task_rule(loaded.state.config).reads_source) return generate_targets(o, loaded);
  check(o.translation_only.empty(), "generate: {} does not apply to a model that continues a text, such as {}; omit it",
        fmt::join(o.translation_only, ", "), o.run);
  o.texts.json = o.json;
  if (o.adapting.adapt) o.texts.adapt = o.adapting.options;
  if (o.interactive) {
    finish_sampling(o.sampling, *loaded.tokenizer, o.texts, /*announce=*/false);
    return continue_interactively(loaded, o.texts, o.unknown, o.remember);
  }
  const std::vector<std::string> prompts = read_prompts(o, *loaded.tokenizer);
  finish_sampling(o.sampling, *loaded.tokenizer, o.texts, /*announce=*/true);
  return continue_texts(loaded, prompts, o.texts);
}

void add_prompt_options(const Command& command, GenerateFlags& o) {
  command.add_argument("RUN", o.run, "run directory or .maki file").require();
  command.add_argument("INPUT", o.input, "prompt: - reads it from standard input, without a trailing newline");
  command.add_option("--prompt", o.prompt, "TEXT", "text to continue");
  command.add_option("--prompt-file", o.prompt_file, "FILE",
                     "file with the text to continue; every byte counts, including a final newline");
  command.add_option("--prompts", o.prompts, "FILE", "file with a text to continue in each line");
  command.add_flag("--interactive", o.interactive,
                   "read prompts one after the other and continue each; \\ at the end of a line continues the prompt");
  command.add_flag(
      "--remember", o.remember,
      "continue what has been said so far, as much as the context holds, not each prompt alone; an empty prompt "
      "goes on, /clear forgets; needs --interactive");
  command.add_option("--unknown", o.unknown, "error|skip|replace",
                     "treatment of characters of the prompt that are not in the vocabulary [error]");
  add_special_option(command, "the prompt", o.special);
}

}  // namespace

void add_generate(const Command& maki) {
  const Command command = maki.add_verb("generate", "Generate text with a trained model, or translate");
  const auto o = std::make_shared<GenerateFlags>();
  add_prompt_options(command, *o);
  command.add_number("--max-tokens", o->texts.text.generate.max_tokens, 0, kMaxCount,
                     "maximum number of tokens to generate");
  std::vector<std::string> sampling = add_sampling_options(command, o->sampling, o->texts);
  sampling.insert(sampling.end(), {"--prompts", "--interactive", "--remember"});
  add_search_options(command, o->translate.beam_size, o->translate.length_penalty);
  add_checkpoint_option(command, o->checkpoint);
  add_threads_option(command, o->threads);
  add_adapt_options(
      command, "let the network, but no n-gram counts, learn the prompt while reading it; the run is left as it is",
      o->adapting);
  command.add_flag("--json", o->json,
                   "print one line of JSON per text: prompt, text, seed, speed and the reason why it ended");
  command.set_action([o, command, sampling] {
    o->text_only = command.given_among(sampling);
    note_adapt_options(command, {}, o->adapting);
    if (o->adapting.adapt) o->text_only.emplace_back("--adapt");
    o->translation_only = command.given_among({"--beam", "--length-penalty"});
    return generate(*o);
  });
}

}  // namespace maki
