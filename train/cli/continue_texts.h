// `maki generate` with a model that continues a text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/loop/generate_text.h"
#include "train/loop/loaded_model.h"
#include "train/loop/online_learner.h"

namespace maki {

struct ContinueTexts {
  std::int64_t samples = 1;  ///< texts per prompt, each from a random stream of its own
  bool json = false;
  bool separate = false;  ///< every text ends with a newline, because others follow
  TextOptions text;
  std::optional<AdaptOptions> adapt =
      {};  ///< set: the model learns the prompt, of which there is one, while reading it
};

/// Writes to stdout, for each prompt and sample, the prompt and its continuation, separated by lines with ---, or a
/// JSON object per text. A prompt that is empty stands for default_prompt(). Text appears as it is generated. Returns
/// the exit code. Throws Error for a prompt that is longer than a context that does not slide, and CheckpointError if
/// the model gives logits that define no distribution.
int continue_texts(const LoadedModel& loaded, const std::vector<std::string>& prompts, const ContinueTexts& how);

}  // namespace maki
