// `maki generate` with a model that continues a text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/loop/generate_text.h"
#include "train/loop/online_learner.h"
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
/// prompt that is longer than a context that does not slide, and CorpusError for one that the tokenizer cannot encode.
/// Throws CheckpointError if the model gives logits that define no distribution, std::system_error if stdout fails.
/// With `adapt` also, before anything is written, Error for options out of their range, and DivergedError if learning
/// the prompt diverges.
int continue_texts(const LoadedModel& loaded, const std::vector<std::string>& prompts, const ContinueTexts& how);

}  // namespace maki
