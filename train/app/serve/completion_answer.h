// A completion that is being computed: its texts, and what has been sent of them.
//
// Thread safety: none; used by the thread that computes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/app/serve/completions.h"
#include "train/app/serve/http.h"
#include "train/loop/text_turns.h"
#include "train/run/loaded_model.h"

namespace maki {

class CompletionAnswer : public std::enable_shared_from_this<CompletionAnswer> {
 public:
  /// Encodes the prompts. Throws Error if the model cannot continue them, and for an answer that would be too large.
  CompletionAnswer(CompletionRequest request, std::shared_ptr<const LoadedModel> model,
                   std::shared_ptr<HttpExchange> exchange);

  /// Whether nobody waits for the rest: the client has gone, does not read, or has been refused.
  bool abandoned() const;
  /// Whether there are prompts whose log-probabilities are wanted and not computed yet.
  bool has_unscored() const { return scored_ < prompts_.size(); }
  /// Computes those of the next one. Requires: has_unscored().
  void score_next();
  /// Begins the answer, and adds its texts to those that are generated. Requires: has_unscored() is false.
  void begin(TextTurns& turns);
  void fail(const HttpError& error);

 private:
  struct Prompt {
    std::string text;               // that is echoed: what the model reads, which a tokenizer may have normalized
    std::vector<std::int32_t> ids;  // what the model reads
    std::vector<TokenLogProbabilities> scores = {};
  };
  class Choice;
  Prompt encode(const CompletionRequest::Prompt& prompt) const;
  void send(Choice& choice);
  void finish();

  CompletionRequest request_;
  std::shared_ptr<const LoadedModel> model_;
  std::shared_ptr<HttpExchange> exchange_;
  Json empty_;  // what all its parts begin with, without a choice
  std::int64_t prompt_tokens_ = 0, completion_tokens_ = 0;
  std::vector<Prompt> prompts_;
  std::vector<std::shared_ptr<Choice>> choices_;
  std::size_t scored_ = 0, open_ = 0;
  bool failed_ = false;
};

}  // namespace maki
