#include "train/app/serve/completion_answer.h"

#include <algorithm>
#include <chrono>

#include "train/app/reading.h"
#include "train/loop/score_tokens.h"
#include "train/run/config/tasks.h"

namespace maki {
namespace {

std::string event(const Json& data) { return "data: " + json_text(data) + "\n"; }

}  // namespace

// One of the texts.
class CompletionAnswer::Choice final : public TurnText {
 public:
  Choice(CompletionAnswer& answer, std::size_t prompt, std::int64_t sample)
      : answer_(answer),
        prompt_(answer.prompts_[prompt]),
        sample_(sample),
        text_(*answer.model_->tokenizer, answer.request_.text),
        part_(static_cast<std::int64_t>(prompt) * answer.request_.n + sample,
              answer.request_.text.log_probabilities.has_value()) {}

  /// The prompt, where it is part of the text.
  void begin() {
    if (!answer_.request_.echo) return;
    part_.text = prompt_.text;
    if (!answer_.request_.scores_prompts() || prompt_.text.empty()) return;
    for (std::size_t i = 0; i < prompt_.ids.size(); ++i)
      part_.add(*answer_.model_->tokenizer, prompt_.ids[i], i == 0 ? nullptr : &prompt_.scores[i - 1]);
    part_.end_prompt();
  }
  const Generator& model() const override { return answer_.model_->generator(); }
  GenerationBatch::Text start() const override {
    const GenerateOptions& how = answer_.request_.text.generate;
    return {prompt_.ids, static_cast<std::uint64_t>(sample_), how.max_tokens, how.sampling};
  }
  const void* request() const override { return &answer_; }
  bool wanted() const override { return !answer_.abandoned(); }
  bool add(std::int32_t token, const Tensor& logits) override {
    ++answer_.completion_tokens_;
    const bool goes_on = text_.add(token, logits);
    // What a slow client does not get now is part of its next event, so that it only needs to keep up with the text.
    if (goes_on && answer_.request_.stream && answer_.exchange_->unsent() < kEnoughUnsent) answer_.send(*this);
    return goes_on && wanted();
  }
  void end(const Generated& how) override {
    text_.end(how);
    part_.end = text_.how().end;
    if (answer_.request_.stream) answer_.send(*this);
    if (--answer_.open_ == 0) answer_.finish();
  }
  void fail(const std::exception&) override {
    const HttpError error = error_for_client();
    // The request was accepted, so that it is not to blame.
    answer_.fail(HttpError(std::max(error.status, MHD_HTTP_INTERNAL_SERVER_ERROR), error.what()));
  }
  /// What is new of the text.
  Json take() {
    part_.text += text_.take();
    const auto& all = text_.how().log_probabilities;
    for (; reported_ < all.size(); ++reported_)
      part_.add(*answer_.model_->tokenizer, all[reported_].drawn.id, &all[reported_]);
    return part_.take();
  }

 private:
  CompletionAnswer& answer_;
  const Prompt& prompt_;
  std::int64_t sample_;
  GrowingText text_;
  std::size_t reported_ = 0;  // log-probabilities that are or were in a part
  CompletionChoice part_;
};

CompletionAnswer::CompletionAnswer(CompletionRequest request, std::shared_ptr<const LoadedModel> model,
                                   std::shared_ptr<HttpExchange> exchange)
    : request_(std::move(request)), model_(std::move(model)), exchange_(std::move(exchange)) {
  static std::int64_t number = 0;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  empty_ = {{"id", fmt::format("cmpl-{}-{}", now.count(), ++number)},
            {"object", "text_completion"},
            {"created", std::chrono::duration_cast<std::chrono::seconds>(now).count()},
            {"model", request_.model},
            {"step", model_->state.step},
            {"seed", request_.text.generate.sampling.seed},
            {"choices", Json::array()}};
  const TaskRule& rule = task_rule(model_->state.config);
  check(rule.writes() && !rule.reads_source(),
        "model: is a model of kind {} for the task {}, which does not continue a text; choose another one",
        model_->model->kind(), rule.name);
  for (const CompletionRequest::Prompt& prompt : request_.prompts) {
    prompts_.push_back(encode(prompt));
    prompt_tokens_ += std::ssize(prompts_.back().ids);
  }
  check_answer_size(request_, prompt_tokens_);
  for (std::size_t prompt = 0; prompt < prompts_.size(); ++prompt) {
    for (std::int64_t sample = 0; sample < request_.n; ++sample)
      choices_.push_back(std::make_shared<Choice>(*this, prompt, sample));
  }
  if (!request_.scores_prompts()) scored_ = prompts_.size();
}

CompletionAnswer::Prompt CompletionAnswer::encode(const CompletionRequest::Prompt& given) const {
  const Tokenizer& tokenizer = *model_->tokenizer;
  Prompt prompt;
  if (const auto* const ids = std::get_if<std::vector<std::int32_t>>(&given)) {
    for (const std::int32_t id : *ids)
      check(id < tokenizer.vocab_size(), "prompt: an id must be below {}, the size of the vocabulary; got {}",
            tokenizer.vocab_size(), id);
    prompt.ids = *ids;
  } else {
    prompt.ids = tokenizer.encode(encodable_text(tokenizer, std::get<std::string>(given), "prompt", Unknown::refuse));
  }
  prompt.text = replace_invalid_utf8(tokenizer.decode(prompt.ids));
  const std::int64_t context = model_->state.config.block_size;
  check(!request_.scores_prompts() || std::ssize(prompt.ids) <= context,
        "prompt: has {} tokens, but the context holds {}, and log-probabilities are given for all of them; shorten it",
        prompt.ids.size(), context);
  const bool imported = model_->state.characters == 0;
  if (prompt.ids.empty()) prompt.ids = default_prompt(tokenizer, /*separated=*/imported);
  return prompt;
}

bool CompletionAnswer::abandoned() const { return failed_ || exchange_->gone(); }

void CompletionAnswer::score_next() {
  Prompt& prompt = prompts_[scored_++];
  if (!prompt.text.empty()) prompt.scores = score_tokens(*model_, prompt.ids, *request_.text.log_probabilities);
}

void CompletionAnswer::begin(TextTurns& turns) {
  if (request_.stream) exchange_->begin_stream();
  open_ = choices_.size();
  for (const std::shared_ptr<Choice>& choice : choices_) {
    choice->begin();
    if (request_.text.generate.max_tokens > 0) {
      turns.add({shared_from_this(), choice.get()});  // only texts that are generated keep the answer
    } else {
      choice->end({});
    }
  }
}

void CompletionAnswer::send(Choice& choice) {
  const Json part = choice.take();
  if (part.is_null()) return;
  Json chunk = empty_;
  chunk["choices"].push_back(part);
  if (request_.include_usage) chunk["usage"] = nullptr;
  exchange_->write(event(chunk));
}

void CompletionAnswer::finish() {
  Json answer = empty_;
  answer["usage"] = {{"prompt_tokens", prompt_tokens_},
                     {"completion_tokens", completion_tokens_},
                     {"total_tokens", prompt_tokens_ + completion_tokens_}};
  if (request_.stream) {
    if (request_.include_usage) exchange_->write(event(answer));
    exchange_->write("data: [DONE]\n\n");
    return exchange_->end();
  }
  for (const std::shared_ptr<Choice>& choice : choices_) answer["choices"].push_back(choice->take());
  exchange_->answer(MHD_HTTP_OK, kJsonType, json_text(answer));
}

void CompletionAnswer::fail(const HttpError& error) {
  failed_ = true;
  exchange_->refuse(error);
}

}  // namespace maki
