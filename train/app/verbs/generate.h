// The parts of `maki generate`: a model continues texts, of files or of a user who types them, or translates lines.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "data/tokenizer/unknown_characters.h"
#include "train/app/command.h"
#include "train/loop/generate_text.h"
#include "train/loop/online_learner.h"
#include "train/loop/translate.h"
#include "train/run/loaded_model.h"

namespace maki {

struct ContinueTexts {
  std::int64_t samples = 1;  ///< texts per prompt; number k (from 0) of each draws from random stream k
  bool json = false;
  bool separate = false;  ///< every text ends with a newline, because others follow
  TextOptions text;
  /// Not null: what has been said so far, which the model reads before the prompt; the prompt and its continuation are
  /// appended. There is one prompt, and one sample of it.
  std::string* conversation = nullptr;
  std::optional<AdaptOptions> adapt =
      {};  ///< set: the model learns the prompt, of which there is one, while reading it
};

/// Writes to stdout, for each prompt and sample, the prompt and its continuation, separated by lines with ---, or a
/// JSON object per text. A prompt that is empty stands for default_prompt(). Text appears as it is generated, JSON at
/// the end of its text. Without JSON, the speed goes to stderr. A signal ends the text after the current token, and no
/// other follows. Returns the exit code: 0, or that of the signal. Before anything is written, throws Error for a
/// prompt that, with the conversation before it, is longer than a context that does not slide, and CorpusError for one
/// that the tokenizer cannot encode. Throws CheckpointError if the model gives logits that define no distribution,
/// std::system_error if stdout fails. With `adapt` also, before anything is written, Error for options out of their
/// range, and DivergedError if learning the prompt diverges.
int continue_texts(const LoadedModel& loaded, const std::vector<std::string>& prompts, const ContinueTexts& how);

/// Reads a prompt from standard input, continues it as continue_texts() does, and so on until the input ends. A line
/// that ends with a backslash goes on in the next line. The seed grows by 1 with each prompt, also after one that
/// cannot be continued, which is reported; then the next one is read. Ctrl-C ends the texts of a prompt that are being
/// written, and the program while it waits for a prompt. SIGTERM and SIGHUP end both. Returns the exit code. Throws
/// CheckpointError and std::system_error as continue_texts() does, and what next_line() throws. `unknown` is the policy
/// for characters that the vocabulary lacks. With `remember`, the model reads before each prompt what has been said so
/// far, as it stands on stdout; the prompt "/clear" makes it forget that.
int continue_interactively(const LoadedModel& loaded, ContinueTexts how, Unknown unknown, bool remember);

/// The options that say how a text is continued. They do not apply to models that translate.
struct SamplingOptions {
  std::optional<std::int64_t> seed, log_probabilities;
  std::string overflow = "recompute";
  std::vector<std::string> logit_bias;
};

/// Whether tokens are drawn at all, instead of always the most likely one being taken.
bool draws_tokens(const Sampling& sampling);
/// Adds the options, which set `flags` and `texts`, and returns their names.
std::vector<std::string> add_sampling_options(const Command& command, SamplingOptions& flags, ContinueTexts& texts);
/// Throws Error for values that are not allowed, and for options without an effect. `json`: whether --json was given.
void check_sampling(const SamplingOptions& flags, const ContinueTexts& texts, bool json);
/// Completes `texts` with what depends on the model's tokenizer, and with a seed: the given one, else a fresh one,
/// which is printed if `announce` is true.
void finish_sampling(const SamplingOptions& flags, const Tokenizer& tokenizer, ContinueTexts& texts, bool announce);

/// How a model that reads one sequence and writes another answers lines.
struct TranslateLines {
  Unknown unknown = Unknown::error;  ///< the policy for characters that the vocabulary lacks
  bool json = false;
  TranslateOptions options;
};

/// Appends the next lines, as next_line() reads them, to `lines`, which are none and become at most `most`. Waits for
/// the first one alone: of a pipe or a terminal, the others are those of which something can be read at once. None at
/// the end of input. Throws what next_line() throws, with the lines before in `lines`.
void read_lines(std::istream& input, std::size_t most, std::vector<std::string>& lines);

/// Writes one line to stdout for each line of `input`, in the same order: the translation (an empty line for one
/// without a token) or, with `json`, a JSON object. Lines that are there are read in blocks, and each block is answered
/// before the next is read. A signal ends it: the block that is being translated is not answered, and while it waits
/// for a line, the program ends. Returns the exit code: 0, or that of the signal. Throws CorpusError, after the lines
/// before it are answered, for a line that cannot be read, is not UTF-8, has unknown characters that the policy does
/// not allow, or is too long for a model with learned positions; CheckpointError if the model gives logits that are not
/// finite; std::system_error if stdout fails.
int translate_lines(const LoadedModel& loaded, std::istream& input, const TranslateLines& how);

}  // namespace maki
