#include "nn/generate/generate.h"

#include <algorithm>
#include <array>
#include <vector>

#include "autograd/core/check.h"

namespace maki {

GenerationBatch::GenerationBatch(const Generator& model, std::span<const Text> texts, bool slide_context)
    : model_(model), slide_context_(slide_context), state_(model.start(std::ssize(texts))) {
  const auto capacity = static_cast<std::size_t>(state_->capacity());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Text& text = texts[i];
    check(!text.prompt.empty(), "generate: the prompt must have at least one token");
    const auto end = text.prompt.last(std::min(text.prompt.size(), capacity));
    rows_.push_back(
        {i, {end.begin(), end.end()}, text.sample, text.max_tokens, text.sampling.penalizes(), Sampler(text.sampling)});
    if (rows_.back().penalizes) rows_.back().history.add_prompt(end);
  }
}

void GenerationBatch::step(const Use& use, const Ended& ended) {
  if (read_ == state_->capacity()) {
    if (!slide_context_) return end_all(StopReason::context_full, ended);
    slide();
  }
  draw(read(), use, ended);
}

void GenerationBatch::end_all(StopReason reason, const Ended& ended) {
  for (const Row& row : rows_) ended(row.text, {row.generated.tokens, reason});
  rows_.clear();
}

// Each row continues from the second half of its context. Requires: the context is full, so that every row has drawn
// the token after it.
void GenerationBatch::slide() {
  const std::int64_t kept = std::max<std::int64_t>(1, state_->capacity() / 2);
  for (Row& row : rows_) row.ids.erase(row.ids.begin(), row.ids.end() - kept);
  state_->clear();
  read_ = 0;
}

// Reads as many tokens as every row has, within the limit of a step: the logits after them, [rows, V].
Tensor GenerationBatch::read() {
  std::int64_t to = read_ + kMaxReadTokens;
  for (const Row& row : rows_) to = std::min<std::int64_t>(to, std::ssize(row.ids));
  std::vector<std::int32_t> ids;
  for (const Row& row : rows_) ids.insert(ids.end(), row.ids.begin() + read_, row.ids.begin() + to);
  const Shape shape{std::ssize(rows_), to - read_};
  read_ = to;
  return model_.next_logits(tensor(ids, shape), *state_);
}

// Draws a token for each row that has read its whole context. Rows that end leave the batch.
void GenerationBatch::draw(const Tensor& logits, const Use& use, const Ended& ended) {
  std::vector<std::int32_t> running;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const auto b = static_cast<std::int64_t>(i);
    Row& row = rows_[i];
    if (std::ssize(row.ids) > read_ || draw(row, slice(logits, 0, b, b + 1), use)) {
      running.push_back(static_cast<std::int32_t>(i));
    } else {
      ended(row.text, row.generated);
    }
  }
  if (running.size() == rows_.size()) return;
  std::vector<Row> rows;
  for (const std::int32_t i : running) rows.push_back(std::move(rows_[static_cast<std::size_t>(i)]));
  rows_ = std::move(rows);
  if (!rows_.empty()) state_->reorder(running);
}

// Returns whether the row continues.
bool GenerationBatch::draw(Row& row, const Tensor& logits, const Use& use) {
  Generated& generated = row.generated;
  row.ids.push_back(row.sampler(logits, row.sample, static_cast<std::uint64_t>(generated.tokens), row.history));
  ++generated.tokens;
  if (row.penalizes) row.history.add_drawn(row.ids.back());
  if (!use(row.text, row.ids.back(), logits)) {
    generated.reason = StopReason::stopped;
    return false;
  }
  return generated.tokens < row.max_tokens;
}

void generate_batch(const Generator& model, std::span<const TextStart> texts, const GenerateOptions& options,
                    const std::function<bool(std::size_t, std::int32_t)>& use,
                    const std::function<void(std::size_t, const Generated&)>& ended, const StopRequest& interrupt) {
  check(std::ranges::none_of(texts, [](const TextStart& text) { return text.prompt.empty(); }),
        "generate: the prompt must have at least one token");
  check(options.max_tokens >= 0, "generate: max_tokens must be at least 0; got {}", options.max_tokens);
  if (texts.empty()) return;
  std::vector<GenerationBatch::Text> rows;
  for (const TextStart& text : texts) rows.push_back({text.prompt, text.sample, options.max_tokens, options.sampling});
  GenerationBatch batch(model, rows, options.slide_context);
  if (options.max_tokens == 0) {
    for (std::size_t i = 0; i < texts.size(); ++i) ended(i, {0, StopReason::max_tokens});
    return;
  }
  const auto use_token = [&](std::size_t i, std::int32_t token, const Tensor& logits) {
    if (options.watch) options.watch(i, token, logits);
    return use(i, token);
  };
  while (batch.running()) {
    batch.step(use_token, ended);
    if (interrupt.requested()) batch.stop(ended);
  }
}

Generated generate(const Generator& model, std::span<const std::int32_t> prompt, const GenerateOptions& options,
                   std::uint64_t sample, const std::function<bool(std::int32_t)>& use) {
  Generated generated;
  generate_batch(
      model, std::array{TextStart{prompt, sample}}, options,
      [&](std::size_t, std::int32_t token) { return use(token); },
      [&](std::size_t, const Generated& result) { generated = result; });
  return generated;
}

}  // namespace maki
