// POST /v1/completions as other programs know it: what a body asks for, and how the answers are written. Knows neither
// the network nor a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

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

/// A body of JSON, which is an object. What is nested deeper than any field of a request is left out: writing it into a
/// message would take a level of the stack for each of its levels. Throws Error.
Json parse_body(std::string_view body);

/// Reads a body; `seed` is used if it has none. Throws Error, which names the field, for anything that is no request,
/// for fields that are not known, and for an answer that would be too large.
CompletionRequest parse_completion(std::string_view body, std::uint64_t seed);

/// The tokens of a text in the form that old clients of completions know: lists of equal length.
class LogprobsWriter {
 public:
  explicit LogprobsWriter(const Tokenizer& tokenizer) : tokenizer_(tokenizer) { clear(); }
  /// The next token; null: nothing is known of it, because it was the first.
  void add(std::int32_t id, const TokenLogProbabilities* scores);
  /// What was added since the last call.
  Json take();

 private:
  void clear();
  std::string name(std::int32_t id) const;

  const Tokenizer& tokenizer_;
  std::int64_t offset_ = 0;  // in characters
  Json lists_;
};

struct CompletionChoice {
  std::int64_t index = 0;
  std::string text;
  Json logprobs = {};
  std::optional<TextEnd> end = {};  ///< none: the text goes on
};
/// What all answers to a request have in common.
struct CompletionHead {
  std::string id, model;
  std::int64_t created = 0;  ///< seconds since 1970
  std::int64_t step = 0;     ///< of the checkpoint
  std::uint64_t seed = 0;
};
struct CompletionUsage {
  std::int64_t prompt_tokens = 0, completion_tokens = 0;
};

/// An answer, or part of one; null: without the usage.
Json completion_json(const CompletionHead& head, const std::vector<CompletionChoice>& choices,
                     const CompletionUsage* usage);

}  // namespace maki
