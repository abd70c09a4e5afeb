#include "train/app/serve/completion_answer.h"

#include <algorithm>
#include <chrono>
#include <random>

#include "train/app/reading.h"
#include "train/loop/score_tokens.h"

namespace maki {
namespace {

constexpr std::size_t kMaxUnsentText = 4 << 20;  // of a client that does not read what it asked for

std::uint64_t random_bits() {
  static std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

CompletionAnswer::CompletionAnswer(CompletionRequest request, std::shared_ptr<const ServedModel> model,
                                   std::shared_ptr<HttpExchange> exchange)
    : request_(std::move(request)), model_(std::move(model)), exchange_(std::move(exchange)) {
  model_->generator();  // throws if there is none
  check_bias();
  Sampling& sampling = request_.text.generate.sampling;
  constexpr std::uint64_t kShortSeeds = 1'000'000'000;  // a number that people can type
  if (!request_.has_seed) sampling.seed = random_bits() % kShortSeeds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  head_ = {fmt::format("cmpl-{:016x}", random_bits()), request_.model,
           std::chrono::duration_cast<std::chrono::seconds>(now).count(), model_->loaded.state.step, sampling.seed};
  for (const CompletionRequest::Prompt& prompt : request_.prompts) {
    prompts_.push_back(encode(prompt));
    usage_.prompt_tokens += std::ssize(prompts_.back().ids);
  }
  const Tokenizer& tokenizer = *model_->loaded.tokenizer;
  for (std::size_t i = 0; i < prompts_.size() * static_cast<std::size_t>(request_.n); ++i) {
    const auto n = static_cast<std::size_t>(request_.n);
    choices_.push_back({i / n, i % n, GrowingText(tokenizer, request_.text), LogprobsWriter(tokenizer)});
    choices_.back().answer.index = static_cast<std::int64_t>(i);
  }
  if (!request_.scores_prompts()) scored_ = prompts_.size();
}

CompletionAnswer::Prompt CompletionAnswer::encode(const CompletionRequest::Prompt& given) const {
  const Tokenizer& tokenizer = *model_->loaded.tokenizer;
  Prompt prompt;
  if (const auto* const ids = std::get_if<std::vector<std::int32_t>>(&given)) {
    for (const std::int32_t id : *ids) {
      check(id < tokenizer.vocab_size(), "prompt: the vocabulary has {} tokens; got the id {}", tokenizer.vocab_size(),
            id);
    }
    prompt = {tokenizer.decode(*ids), *ids};
  } else {
    prompt.text = encodable_text(tokenizer, std::get<std::string>(given), "prompt", Unknown::error);
    prompt.ids = tokenizer.encode(prompt.text);
  }
  const std::int64_t context = model_->loaded.state.config.block_size;
  check(!request_.scores_prompts() || std::ssize(prompt.ids) <= context,
        "prompt: has {} tokens, but the context holds {}, and log-probabilities are given for all of them; shorten it",
        prompt.ids.size(), context);
  if (prompt.ids.empty()) {
    prompt.ids = default_prompt(tokenizer, /*separated=*/model_->loaded.state.characters == 0);
    prompt.stands_for_nothing = true;
  }
  return prompt;
}

void CompletionAnswer::check_bias() const {
  const std::int64_t size = model_->loaded.state.vocab_size;
  for (const LogitBias& bias : request_.text.generate.sampling.logit_bias)
    check(bias.id < size, "logit_bias: the vocabulary has {} tokens; got the id {}", size, bias.id);
}

bool CompletionAnswer::abandoned() const {
  return failed_ || exchange_->gone() || (request_.stream && exchange_->unsent() > kMaxUnsentText);
}

bool CompletionAnswer::score_next() {
  if (scored_ == prompts_.size()) return false;
  Prompt& prompt = prompts_[scored_++];
  if (!prompt.stands_for_nothing)
    prompt.scores = score_tokens(model_->without_dropout(), prompt.ids, *request_.text.log_probabilities);
  return true;
}

bool CompletionAnswer::begin() {
  if (request_.stream) exchange_->begin_stream();
  for (Choice& choice : choices_) echo(choice);
  open_ = choices_.size();
  if (request_.text.generate.max_tokens > 0) return true;
  for (std::size_t i = 0; i < choices_.size(); ++i) end(i, {0, StopReason::max_tokens});
  return false;
}

// The prompt at the beginning of the text, and its log-probabilities, if they are wanted.
void CompletionAnswer::echo(Choice& choice) {
  if (!request_.echo) return;
  const Prompt& prompt = prompts_[choice.prompt];
  choice.answer.text = prompt.text;
  if (!request_.text.log_probabilities || prompt.stands_for_nothing) return;
  choice.logprobs.add(prompt.ids.front());
  for (const TokenLogProbabilities& score : prompt.scores) choice.logprobs.add(score);
}

GenerationBatch::Text CompletionAnswer::start(std::size_t choice) const {
  const Choice& its = choices_[choice];
  return {prompts_[its.prompt].ids, its.sample, request_.text.generate.max_tokens, request_.text.generate.sampling};
}

bool CompletionAnswer::add(std::size_t i, std::int32_t token, const Tensor& logits) {
  Choice& choice = choices_[i];
  ++usage_.completion_tokens;
  const bool goes_on = choice.text.add(token, logits);
  collect(choice);
  if (goes_on && request_.stream) send(choice);
  return goes_on && !abandoned();
}

// Takes from the text what is certain.
void CompletionAnswer::collect(Choice& choice) {
  choice.answer.text += choice.text.take();
  const auto& all = choice.text.how().log_probabilities;
  while (choice.reported < all.size()) choice.logprobs.add(all[choice.reported++]);
}

void CompletionAnswer::send(Choice& choice) {
  const bool waits = choice.answer.text.empty() && !choice.answer.end && !request_.text.log_probabilities;
  if (waits) return;
  if (request_.text.log_probabilities) choice.answer.logprobs = choice.logprobs.take();
  exchange_->write(chunk_event(head_, choice.answer, request_.include_usage));
  choice.answer.text.clear();
}

void CompletionAnswer::end(std::size_t i, const Generated& how) {
  Choice& choice = choices_[i];
  choice.text.end(how);
  collect(choice);
  choice.answer.end = choice.text.how().end;
  if (request_.stream) send(choice);
  if (--open_ == 0) finish();
}

void CompletionAnswer::finish() {
  if (failed_) return;
  if (request_.stream) {
    if (request_.include_usage) exchange_->write(usage_event(head_, usage_));
    exchange_->write(kLastEvent);
    return exchange_->end();
  }
  std::vector<CompletionChoice> answers;
  for (Choice& choice : choices_) {
    if (request_.text.log_probabilities) choice.answer.logprobs = choice.logprobs.take();
    answers.push_back(std::move(choice.answer));
  }
  exchange_->answer(200, "application/json", completion_json(head_, answers, usage_));
}

void CompletionAnswer::fail(const HttpError& error) {
  if (std::exchange(failed_, true)) return;
  if (!request_.stream || !exchange_->begun()) return exchange_->refuse(error);
  exchange_->write("data: " + error_json(error.status(), error.what()) + "\n");
  exchange_->end();
}

}  // namespace maki
