// POST /v1/completions as other programs know it: what a body asks for, and how the answers are written. Knows neither
// the network nor a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "data/io/utf8.h"
#include "train/app/report.h"
#include "train/loop/generate_text.h"

namespace maki {

struct CompletionRequest {
  using Prompt = std::variant<std::string, std::vector<std::int32_t>>;
  std::string model;
  std::vector<Prompt> prompts;  ///< texts, or ids of tokens; at least one
  std::int64_t n = 1;           ///< texts for each prompt
  TextOptions text;             ///< also the most tokens of each text, and the seed
  bool echo = false, stream = false, include_usage = false;

  /// Whether the log-probabilities of the prompts are part of the answer.
  bool scores_prompts() const { return echo && text.log_probabilities.has_value(); }
};

/// The largest number of texts of one request, and of tokens of each.
inline constexpr std::int64_t kMaxChoices = 128, kMaxCompletionTokens = 100'000;

/// Reads a body; `seed` is used if it has none. Throws Error, which names the field, for anything that is no request,
/// for fields that are not known, and for an answer that would be too large even without its prompts.
CompletionRequest parse_completion(std::string_view body, std::uint64_t seed);

/// Throws Error if the answer would be too large, for prompts of so many tokens in all.
void check_answer_size(const CompletionRequest& request, std::int64_t prompt_tokens);

/// A text of an answer, which is sent in parts, in the form that old clients of completions know.
class CompletionChoice {
 public:
  /// `scored`: its tokens are part of the answer, in lists of equal length.
  CompletionChoice(std::int64_t index, bool scored);

  std::string text;                 ///< that was not taken yet
  std::optional<TextEnd> end = {};  ///< none: the text goes on
  /// A token for the lists. Null scores: nothing is known of it, because it was the first.
  void add(const Tokenizer& tokenizer, std::int32_t id, const TokenLogProbabilities* scores);
  /// The tokens of the prompt are complete: what follows is no part of a character that its last ones have begun.
  void end_prompt();
  /// The part since the last call; null if nothing is new.
  Json take();

 private:
  std::int64_t place(std::string_view bytes);

  std::int64_t index_, offset_ = 0;  // the number of characters that the tokens so far show
  Utf8Stream characters_;            // their bytes
  Json no_tokens_, tokens_;          // the lists when they are empty, and as they are; null: not scored
};

}  // namespace maki
