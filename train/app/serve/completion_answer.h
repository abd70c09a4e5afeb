// A completion that is being computed: its texts, and what has been sent of them.
//
// Thread safety: none; used by the thread that computes.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "nn/generate/generate.h"
#include "train/app/serve/completions.h"
#include "train/app/serve/http.h"
#include "train/app/serve/model_cache.h"

namespace maki {

class CompletionAnswer {
 public:
  /// Encodes the prompts. Throws HttpError, or Error, if the model cannot continue them.
  CompletionAnswer(CompletionRequest request, std::shared_ptr<const ServedModel> model,
                   std::shared_ptr<HttpExchange> exchange);

  const ServedModel& model() const { return *model_; }
  std::size_t choices() const { return choices_.size(); }
  /// Whether nobody waits for the rest: the client has gone, does not read, or has been refused.
  bool abandoned() const;

  /// Computes the log-probabilities of the next prompt of which they are wanted. Returns false if there is none.
  bool score_next();
  /// Requires: all prompts that are to be scored have been. Returns whether there is anything to generate.
  bool begin();
  /// What a batch needs of a text.
  GenerationBatch::Text start(std::size_t choice) const;
  /// The next token of a text. Returns whether the text goes on.
  bool add(std::size_t choice, std::int32_t token, const Tensor& logits);
  void end(std::size_t choice, const Generated& how);
  void fail(const HttpError& error);

 private:
  struct Prompt {
    std::string text;                 // as it is echoed
    std::vector<std::int32_t> ids;    // what the model reads
    bool stands_for_nothing = false;  // the ids are those of an empty prompt
    std::vector<TokenLogProbabilities> scores = {};
  };
  struct Choice {
    std::size_t prompt;
    std::uint64_t sample;
    GrowingText text;
    LogprobsWriter logprobs;
    std::size_t reported = 0;  // log-probabilities that were passed to the writer
    CompletionChoice answer = {};
  };
  Prompt encode(const CompletionRequest::Prompt& prompt) const;
  void check_bias() const;
  void echo(Choice& choice);
  void collect(Choice& choice);
  void send(Choice& choice);
  void finish();

  CompletionRequest request_;
  std::shared_ptr<const ServedModel> model_;
  std::shared_ptr<HttpExchange> exchange_;
  CompletionHead head_;
  CompletionUsage usage_;
  std::vector<Prompt> prompts_;
  std::deque<Choice> choices_;  // the text options are those of request_, which does not move
  std::size_t scored_ = 0, open_ = 0;
  bool failed_ = false;
};

}  // namespace maki
