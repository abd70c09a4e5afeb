// The options of `maki generate` that say how a text is continued. They do not apply to models that translate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/app/command.h"
#include "train/app/continue_texts.h"

namespace maki {

struct SamplingFlags {
  std::optional<std::int64_t> seed, log_probabilities;
  std::string overflow = "recompute";
  std::vector<std::string> logit_bias;
};

/// Adds the options, which set `flags` and `texts`, and returns their names.
std::vector<std::string> add_sampling_options(const Command& command, SamplingFlags& flags, ContinueTexts& texts);
/// Throws Error for values that are not allowed, and for options without an effect. `json`: whether --json was given.
void check_sampling(const SamplingFlags& flags, const ContinueTexts& texts, bool json);
/// Completes `texts` with what depends on the model's tokenizer, and with a seed: the given one, else a fresh one,
/// which is printed if `announce` is true.
void finish_sampling(const SamplingFlags& flags, const Tokenizer& tokenizer, ContinueTexts& texts, bool announce);

}  // namespace maki
