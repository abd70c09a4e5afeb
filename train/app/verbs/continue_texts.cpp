#include <algorithm>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/io/error.h"
#include "data/io/number.h"
#include "train/app/bench/timing.h"
#include "train/app/interrupt.h"
#include "train/app/progress.h"
#include "train/app/report.h"
#include "train/app/verbs/generate.h"

namespace maki {
namespace {

Json entry_json(const Tokenizer& tokenizer, const LogProbability& entry) {
  return {{"token", tokenizer.bytes(entry.id)}, {"id", entry.id}, {"logprob", entry.value}};
}

// An object for each token that was drawn. JSON has no infinite number: a logit of −Inf gives null.
Json log_probabilities_json(const Tokenizer& tokenizer, const GeneratedText& text) {
  Json list = Json::array();
  for (const TokenLogProbabilities& token : text.log_probabilities) {
    list.push_back(entry_json(tokenizer, token.drawn));
    Json& top = list.back()["top"] = Json::array();
    for (const LogProbability& entry : token.top) top.push_back(entry_json(tokenizer, entry));
  }
  return list;
}

// Whether the lines of stderr are seen after the text: stdout is a terminal, or both are one file or pipe.
bool shows_lines_after_text() {
  if (isatty(STDOUT_FILENO) != 0) return true;
  struct stat out = {}, err = {};
  return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 && is_same_file(out, err);
}

// Writes texts and facts about them to standard output, without buffering, so that text appears as it is generated.
class Output {
 public:
  Output(const LoadedModel& loaded, const std::vector<std::string>& prompts, const ContinueTexts& how)
      : loaded_(loaded),
        prompts_(prompts),
        how_(how),
        count_(static_cast<std::int64_t>(prompts.size()) * how.samples),
        start_(seconds_now()) {}

  /// A piece of text i, which belongs to sample i % samples of prompt i / samples.
  void piece(std::int64_t i, std::string_view piece) {
    begin(i);
    if (how_.conversation != nullptr) *how_.conversation += piece;
    if (how_.json) {
      written_ += piece;
    } else {
      write(piece);
    }
  }
  void end(std::int64_t i, const GeneratedText& text) {
    begin(i);
    begun_ = false;
    tokens_ += text.tokens;
    if (how_.json) return write_json(i, text);
    const bool more = i + 1 < count_ && text.end != TextEnd::interrupt;
    end_line(/*text_follows=*/more || how_.separate);
    if (more) write("---\n");
    if (text.end == TextEnd::window)
      to_stderr("the context window of {} tokens is full; to continue past it: --overflow recompute\n",
                loaded_.state.config.block_size);
    if (!more) report(i + 1);
  }
  /// The line between two texts, those of stderr and the shell's prompt start on a new line. Otherwise stdout gets no
  /// byte that the model did not write.
  void end_line(bool text_follows) {
    if (last_ == '\n') return;
    if (text_follows || shows_lines_after_text()) {
      write("\n");
    } else if (struct stat out = {};
               fstat(STDOUT_FILENO, &out) == 0 && S_ISFIFO(out.st_mode) && isatty(STDERR_FILENO)) {
      to_stderr("\n");  // what reads the pipe, such as tee, may show the text on the same terminal
    }
  }

 private:
  const std::string& prompt(std::int64_t i) const { return prompts_[static_cast<std::size_t>(i / how_.samples)]; }
  void begin(std::int64_t i) {
    if (!begun_ && how_.conversation != nullptr) *how_.conversation += prompt(i);
    if (!begun_ && !how_.json) write(prompt(i));
    begun_ = true;
  }
  void write(std::string_view text) {
    print_result(text);
    flush_results();
    if (!text.empty()) last_ = text.back();
  }
  // One line of JSON. Bytes of the path that are not UTF-8 are replaced.
  void write_json(std::int64_t i, const GeneratedText& text) {
    const double speed = per_second(static_cast<double>(tokens_), seconds_now() - start_);  // of all texts so far
    Json facts{{"checkpoint", loaded_.path}, {"step", loaded_.state.step}, {"seed", how_.text.generate.sampling.seed},
               {"sample", i % how_.samples}, {"prompt", prompt(i)},        {"text", written_},
               {"tokens", text.tokens},      {"tokens_per_second", speed}, {"stop", to_string(text.end)}};
    if (how_.text.log_probabilities) facts["logprobs"] = log_probabilities_json(*loaded_.tokenizer, text);
    write(json_text(facts));
    written_.clear();
  }
  void report(std::int64_t texts) const {
    const double seconds = seconds_now() - start_;
    const std::string of = texts == 1 ? "" : fmt::format(" of {} texts", texts);
    to_stderr("{}{} in {:.2f} s, {:.0f} tokens per second\n", pluralize(tokens_, "token"), of, seconds,
              per_second(static_cast<double>(tokens_), seconds));
  }

  const LoadedModel& loaded_;
  const std::vector<std::string>& prompts_;
  const ContinueTexts& how_;
  std::int64_t count_, tokens_ = 0;
  double start_;
  bool begun_ = false;  // whether something of the text has been written
  std::string written_;
  char last_ = '\n';
};

// The ids of what the model, which holds `context` tokens, reads: the conversation so far, if there is one, and the
// prompt.
std::vector<std::int32_t> ids_of(const std::string& prompt, const LoadedModel& loaded, std::int64_t context,
                                 const ContinueTexts& how) {
  // An imported checkpoint records no corpus. The texts that GPT-2 and Llama were trained on each end with a token of
  // their own, from which default_prompt() then starts.
  const bool imported = loaded.state.characters == 0;
  const std::string text = (how.conversation != nullptr ? *how.conversation : "") + prompt;
  if (text.empty()) return default_prompt(*loaded.tokenizer, /*separated=*/imported);
  std::vector<std::int32_t> ids = loaded.tokenizer->encode(text);
  if (std::ssize(ids) <= context) return ids;
  const bool slides = how.text.generate.slide_context;
  const bool goes_on = how.conversation != nullptr && !how.conversation->empty();
  check(slides || !goes_on,
        "prompt: the conversation has {} tokens with it, but the context window holds {}; forget the conversation with "
        "/clear, or use --overflow recompute",
        ids.size(), context);
  check(slides, "prompt: has {} tokens, but the context window holds {}; shorten it, or use --overflow recompute",
        ids.size(), context);
  to_stderr("the {} has {} tokens, but the context window holds {}: the model {} the last {}\n",
            goes_on ? "conversation" : "prompt", ids.size(), context,
            how.adapt ? "learns all of it and continues from" : "reads only", context);
  return ids;
}

}  // namespace

int continue_texts(const LoadedModel& loaded, const std::vector<std::string>& prompts, const ContinueTexts& how) {
  // Of one or several prompts. Bounds the memory of their starts, because --samples may be a billion; far more than are
  // generated in one batch.
  constexpr std::int64_t kSamplesAtOnce = 1024;
  std::vector<std::vector<std::int32_t>> ids;
  const std::int64_t context = loaded.generator().start(1)->capacity();  // of some models without a limit
  for (const std::string& prompt : prompts) ids.push_back(ids_of(prompt, loaded, context, how));
  const DeferInterrupts deferred;  // a signal ends the text after the current token
  // The model that has learned the prompt; learning ends as soon as the prompt has been read.
  std::optional<OnlineLearner> learner;
  if (how.adapt) {
    learner.emplace(loaded, *how.adapt);
    learner->read(
        ids.at(0), [](const Prediction&) {}, interrupt_request());
  }
  const Generator& model = learner ? *learner->model().as_generator() : loaded.generator();
  Output output(loaded, prompts, how);
  std::vector<TextStart> starts;
  std::int64_t first = 0;  // the text of starts[0]
  TextEnd last = TextEnd::length;
  const auto piece = [&](std::size_t i, std::string_view text) {
    output.piece(first + static_cast<std::int64_t>(i), text);
  };
  const auto end = [&](std::size_t i, const GeneratedText& text) {
    output.end(first + static_cast<std::int64_t>(i), text);
    last = text.end;
  };
  const auto run = [&] {
    generate_texts(model, *loaded.tokenizer, starts, how.text, piece, end, interrupt_request());
    first += std::ssize(starts);
    starts.clear();
  };
  try {
    for (const std::vector<std::int32_t>& prompt : ids) {
      for (std::int64_t sample = 0; sample < how.samples; ++sample) {
        starts.push_back({prompt, static_cast<std::uint64_t>(sample)});
        if (std::ssize(starts) < kSamplesAtOnce && (sample + 1 < how.samples || &prompt != &ids.back())) continue;
        run();
        if (last == TextEnd::interrupt) return interrupt_exit_code();
      }
    }
  } catch (const BadLogitsError& error) {
    if (!how.json) output.end_line(/*text_follows=*/false);
    fail<CheckpointError>("{}: {}", loaded.path, error.what());
  }
  return 0;
}

}  // namespace maki
