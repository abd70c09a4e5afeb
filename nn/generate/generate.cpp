#include "nn/generate/generate.h"

#include <algorithm>
#include <array>
#include <vector>

#include "autograd/core/check.h"

namespace maki {
namespace {

// A text that is being generated: one row of the state.
struct Row {
  std::size_t text;               // its index
  std::vector<std::int32_t> ids;  // the context: what the state has read of it, and what it reads next
  Generated generated = {};
  TokenHistory history = {};  // kept only if there are penalties
};

// All rows are at the same position of their contexts. They read their prompts together until the shortest one ends,
// and from then on one token at a time: the next one of the prompt, or the one that was drawn. So no row needs padding
// or a length of its own, which a recurrent state could not have.
class GenerationBatch {
 public:
  using Use = std::function<bool(std::size_t, std::int32_t)>;
  using Ended = std::function<void(std::size_t, const Generated&)>;

  GenerationBatch(const Generator& model, std::span<const TextStart> texts, const GenerateOptions& options)
      : model_(model),
        texts_(texts),
        options_(options),
        sampler_(options.sampling),
        state_(model.start(std::ssize(texts))) {
    const auto capacity = static_cast<std::size_t>(state_->capacity());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto end = texts[i].prompt.last(std::min(texts[i].prompt.size(), capacity));
      rows_.push_back({i, {end.begin(), end.end()}});
      if (options.sampling.penalizes()) rows_.back().history.add_prompt(end);
    }
  }

  bool running() const { return !rows_.empty(); }
  bool is_full() const { return read_ == state_->capacity(); }

  void end_all(StopReason reason, const Ended& ended) {
    for (const Row& row : rows_) ended(row.text, {row.generated.tokens, reason});
    rows_.clear();
  }

  /// Each row continues from the second half of its context. Requires: the context is full, so that every row has drawn
  /// the token after it.
  void slide() {
    const std::int64_t kept = std::max<std::int64_t>(1, state_->capacity() / 2);
    for (Row& row : rows_) row.ids.erase(row.ids.begin(), row.ids.end() - kept);
    state_->clear();
    read_ = 0;
  }

  /// Reads as many tokens as every row has: the logits after them, [rows, V].
  Tensor read() {
    std::int64_t end = std::ssize(rows_.front().ids);
    for (const Row& row : rows_) end = std::min(end, std::ssize(row.ids));
    std::vector<std::int32_t> ids;
    for (const Row& row : rows_) ids.insert(ids.end(), row.ids.begin() + read_, row.ids.begin() + end);
    const Shape shape{std::ssize(rows_), end - read_};
    read_ = end;
    return model_.next_logits(tensor(ids, shape), *state_);
  }

  /// Draws a token for each row that has read its whole context. Rows that end leave the batch.
  void draw(const Tensor& logits, const Use& use, const Ended& ended) {
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

 private:
  // Returns whether the row continues.
  bool draw(Row& row, const Tensor& logits, const Use& use) {
    Generated& generated = row.generated;
    const auto position = static_cast<std::uint64_t>(generated.tokens);
    row.ids.push_back(sampler_(logits, texts_[row.text].sample, position, row.history));
    ++generated.tokens;
    if (options_.sampling.penalizes()) row.history.add_drawn(row.ids.back());
    if (options_.watch) options_.watch(row.text, row.ids.back(), logits);
    if (!use(row.text, row.ids.back())) {
      generated.reason = StopReason::stopped;
      return false;
    }
    return generated.tokens < options_.max_tokens;
  }

  const Generator& model_;
  std::span<const TextStart> texts_;
  const GenerateOptions& options_;
  Sampler sampler_;
  std::unique_ptr<State> state_;
  std::vector<Row> rows_;
  std::int64_t read_ = 0;  // tokens of every context that the state has read
};

}  // namespace

void generate_batch(const Generator& model, std::span<const TextStart> texts, const GenerateOptions& options,
                    const std::function<bool(std::size_t, std::int32_t)>& use,
                    const std::function<void(std::size_t, const Generated&)>& ended) {
  check(std::ranges::none_of(texts, [](const TextStart& text) { return text.prompt.empty(); }),
        "generate: the prompt must have at least one token");
  if (texts.empty()) return;
  GenerationBatch batch(model, texts, options);
  if (options.max_tokens == 0) batch.end_all(StopReason::max_tokens, ended);
  while (batch.running()) {
    if (batch.is_full()) {
      if (!options.slide_context) return batch.end_all(StopReason::context_full, ended);
      batch.slide();
    }
    batch.draw(batch.read(), use, ended);
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
