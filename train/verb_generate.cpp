// maki generate RUN [--prompt TEXT | --prompt-file F | -]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <fmt/core.h>
#include <memory>
#include <optional>
#include <system_error>
#include <unistd.h>

#include "autograd/core/parallel.h"
#include "data/error.h"
#include "data/file.h"
#include "data/unknown.h"
#include "data/utf8.h"
#include "nn/kv_cache.h"
#include "nn/sampler.h"
#include "train/error.h"
#include "train/flags.h"
#include "train/interrupt.h"
#include "train/loaded_model.h"
#include "train/number.h"
#include "train/progress.h"
#include "train/run_directory.h"
#include "train/verbs.h"

namespace maki {
namespace {

struct GenerateOptions {
  std::string run, input, prompt, prompt_file, checkpoint, overflow = "recompute", unknown = "error";
  std::vector<std::string> stop;
  std::int64_t max_tokens = 200, seed = 0, threads = 0;
  Sampling sampling;
  bool has_prompt = false;
};

// Writes text as it comes, but never a broken character, and nothing that may turn out to be the beginning of a stop
// string.
class Output {
 public:
  explicit Output(const std::vector<std::string>& stop) : stop_(stop) {}

  /// False: a stop string was reached; what comes before it was written.
  bool push(std::string_view bytes) {
    held_ += characters_.push(bytes);
    const std::size_t end = find_stop();
    write(end == std::string::npos ? held_.size() - longest_beginning() : end);
    return end == std::string::npos;
  }
  void finish() {
    held_ += characters_.finish();
    write(std::min(held_.size(), find_stop()));
  }
  /// The last byte that was written.
  std::optional<char> last() const { return last_; }

 private:
  std::size_t find_stop() const {
    std::size_t first = std::string::npos;
    for (const std::string& text : stop_) first = std::min(first, held_.find(text));
    return first;
  }
  // Bytes at the end that begin a stop string.
  std::size_t longest_beginning() const {
    std::size_t longest = 0;
    for (const std::string& text : stop_) {
      for (std::size_t n = std::min(text.size() - 1, held_.size()); n > longest; --n) {
        if (held_.ends_with(std::string_view(text).substr(0, n))) longest = n;
      }
    }
    return longest;
  }
  void write(std::size_t n) {
    if (std::fwrite(held_.data(), 1, n, stdout) != n || std::fflush(stdout) != 0)
      throw std::system_error(errno, std::generic_category());
    if (n > 0) last_ = held_[n - 1];
    held_.erase(0, n);
  }

  const std::vector<std::string>& stop_;
  Utf8Stream characters_;
  std::string held_;
  std::optional<char> last_;
};

Tensor ids_tensor(std::span<const std::int32_t> ids) { return tensor(ids, {1, static_cast<std::int64_t>(ids.size())}); }

// The ids to start from, and whether they are shown: an empty prompt starts from a newline that is not.
std::pair<std::vector<std::int32_t>, bool> start_ids(const GenerateOptions& options, const Tokenizer& tokenizer) {
  std::string prompt = options.prompt;
  if (!options.prompt_file.empty()) prompt = read_file(options.prompt_file);
  if (options.input == "-") prompt = read_standard_input();
  if (!prompt.empty()) {
    const auto bad = invalid_utf8(prompt);
    check<CorpusError>(!bad, "prompt: must be UTF-8; byte {} is not", bad.value_or(0));
    const KnownText known = known_text(tokenizer, {prompt}, unknown_named(options.unknown));
    if (known.unknown > 0) to_stderr("prompt: {}\n", known.describe());
    if (!known.pieces[0].empty()) return {tokenizer.encode(known.pieces[0]), true};
  }
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.bytes(id) == "\n") return {{id}, false};
  }
  return {{0}, false};
}

void check_options(const GenerateOptions& o) {
  check(o.overflow == "recompute" || o.overflow == "stop", "overflow: must be recompute or stop; got {}", o.overflow);
  unknown_named(o.unknown);
  check(std::ranges::none_of(o.stop, &std::string::empty), "stop: must not be empty");
  check(o.input.empty() || o.input == "-", "generate: only - may follow the run (a prompt from standard input); got {}",
        o.input);
  const int prompts = (o.has_prompt ? 1 : 0) + (o.prompt_file.empty() ? 0 : 1) + (o.input.empty() ? 0 : 1);
  check(prompts <= 1, "generate: give one of --prompt, --prompt-file and -");
}

void check_length(const GenerateOptions& o, std::int64_t length, std::int64_t block_size) {
  if (length <= block_size) return;
  check(o.overflow != "stop", "prompt: has {} tokens and the window {}; shorten it, or let --overflow be recompute",
        length, block_size);
  to_stderr("the prompt has {} tokens and the window {}: the model reads the last {}\n", length, block_size,
            block_size);
}

enum class End : std::uint8_t { length, stop_string, window, interrupt };

// Token by token, until one of the four. `ids` holds what the model reads next, `window` everything it has read since
// the cache was last filled: of a longer prompt its end, and from the end of the window on its last half.
End write_text(const GenerateOptions& o, const Gpt& model, const Tokenizer& tokenizer, std::vector<std::int32_t> ids,
               Output& output) {
  const std::int64_t block_size = model.config.block_size;
  ids.erase(ids.begin(), ids.end() - std::min(block_size, static_cast<std::int64_t>(ids.size())));
  Sampling sampling = o.sampling;
  sampling.seed = static_cast<std::uint64_t>(o.seed);
  Sampler sampler(sampling);
  KvCache cache = model.make_cache(1);
  std::vector<std::int32_t> window;
  for (std::int64_t n = 0; n < o.max_tokens; ++n) {
    if (interrupted() != 0) return End::interrupt;
    window.insert(window.end(), ids.begin(), ids.end());
    if (static_cast<std::int64_t>(window.size()) > block_size) {
      if (o.overflow == "stop") return End::window;
      window.erase(window.begin(), window.end() - std::max<std::int64_t>(1, block_size / 2));
      cache.clear();
      ids = window;
    }
    const Tensor logits = model.next_logits(ids_tensor(ids), cache);
    ids = {sampler(logits, 0, static_cast<std::uint64_t>(n))};
    if (!output.push(tokenizer.bytes(ids.front()))) return End::stop_string;
  }
  return End::length;
}

int generate(const GenerateOptions& o) {
  check_options(o);
  if (o.threads != 0) set_threads(o.threads);
  const Sampler valid(o.sampling);  // a mistake there is said before the model is read
  const LoadedModel loaded(chosen_checkpoint(o.run, o.checkpoint));
  const std::int64_t block_size = loaded.model.config.block_size;
  to_stderr("{}, step {}\n", loaded.path, loaded.state.step);
  const auto [ids, echoed] = start_ids(o, *loaded.tokenizer);
  check_length(o, static_cast<std::int64_t>(ids.size()), block_size);
  const std::vector<std::string> none;
  Output echo(none), output(o.stop);
  if (echoed) {
    echo.push(loaded.tokenizer->decode(ids));
    echo.finish();
  }
  const DeferInterrupts deferred;  // what was written so far is finished
  const End end = write_text(o, loaded.model, *loaded.tokenizer, ids, output);
  if (end != End::stop_string) output.finish();
  // The prompt of a shell begins on a line of its own; a file gets no byte that the model did not write.
  if (isatty(STDOUT_FILENO) != 0 && output.last().value_or(echo.last().value_or('\n')) != '\n') fmt::print("\n");
  if (end == End::window) to_stderr("the window of {} tokens is full; --overflow recompute goes on\n", block_size);
  return end == End::interrupt ? interrupt_exit_code() : 0;
}

}  // namespace

void add_generate(CLI::App& app, Verb& chosen) {
  CLI::App* const command = app.add_subcommand("generate", "Write text with a trained model");
  const auto o = std::make_shared<GenerateOptions>();
  command->add_option("RUN", o->run, "run directory or .maki file")->required();
  command->add_option("INPUT", o->input, "-: the prompt comes from standard input");
  CLI::Option* const prompt = command->add_option("--prompt", o->prompt, "text to begin with")->take_last();
  command->add_option("--prompt-file", o->prompt_file, "file with the text to begin with")
      ->type_name("FILE")
      ->take_last();
  command
      ->add_option("--unknown", o->unknown,
                   "characters of the prompt that the model lacks: refuse, leave out or replace them [error]")
      ->type_name("error|skip|replace")
      ->take_last();
  add_number(*command, "--max-tokens", o->max_tokens, 0, kMostCount, "tokens to write");
  add_number(*command, "--temperature", o->sampling.temperature, 0, kMostCount, "0: always the most likely token");
  add_number(*command, "--top-k", o->sampling.top_k, 0, kMostCount, "choose among the k most likely; 0: all");
  add_number(*command, "--top-p", o->sampling.top_p, 0, 1, "choose among the most likely of this probability together");
  add_number(*command, "--seed", o->seed, 0, kMostSeed, "of the choice");
  command->add_option("--stop", o->stop, "end before this text; may be given several times")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--checkpoint", o->checkpoint, "last, best or a step [best, else last]")
      ->type_name("WHICH")
      ->take_last();
  command
      ->add_option("--overflow", o->overflow, "at the end of the window: go on from its last half, or stop [recompute]")
      ->type_name("recompute|stop")
      ->take_last();
  add_number(*command, "--threads", o->threads, 0, kMostThreads, "0: OMP_NUM_THREADS, else every core");
  command->callback([o, prompt, &chosen] {
    o->has_prompt = prompt->count() > 0;
    chosen = [o] { return generate(*o); };
  });
}

}  // namespace maki
