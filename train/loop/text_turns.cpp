#include "train/loop/text_turns.h"

#include <algorithm>

namespace maki {
namespace {

constexpr std::size_t kMaxTurns = 4;       // batches at the same time
constexpr std::int64_t kMaxTurnRows = 32;  // texts of a batch
constexpr std::int64_t kMaxTurnStateBytes = 1 << 30;
// What a batch reads at once when it begins, which delays the tokens of the others.
constexpr std::int64_t kMaxTurnPromptTokens = 4096;
// Texts read their prompts together until the shortest one ends, and from then on one token at a time.
constexpr std::int64_t kMaxPromptDifference = 32;

std::int64_t state_bytes(const Generator& model) {
  std::int64_t bytes = 1;
  const std::unique_ptr<State> state = model.start(1);
  for (const auto& [name, values] : state->tensors()) {
    if (*values) bytes += values->numel() * size_of(values->dtype());
  }
  return bytes;
}

std::vector<GenerationBatch::Text> starts(const std::vector<std::shared_ptr<TurnText>>& texts) {
  std::vector<GenerationBatch::Text> list;
  for (const auto& text : texts) list.push_back(text->start());
  return list;
}

}  // namespace

TextTurns::Batch::Batch(Texts its_texts)
    : texts(std::move(its_texts)), generation(texts.front()->model(), starts(texts)) {}

void TextTurns::step() {
  form_batches();
  for (Batch& batch : batches_) {
    try {
      batch.generation.step(
          [&](std::size_t i, std::int32_t token, const Tensor& logits) { return batch.texts[i]->add(token, logits); },
          [&](std::size_t i, const Generated& how) {
            batch.texts[i]->end(how);
            batch.texts[i].reset();
          });
    } catch (const std::exception& error) {
      for (const auto& text : batch.texts) {
        if (text) text->fail(error);
      }
      batch.texts.clear();
    }
  }
  std::erase_if(batches_, [](const Batch& batch) { return batch.texts.empty() || !batch.generation.running(); });
}

void TextTurns::form_batches() {
  while (batches_.size() < kMaxTurns) {
    std::erase_if(waiting_, [](const auto& text) { return !text->wanted(); });
    if (waiting_.empty()) return;
    const Texts texts = take();
    try {
      batches_.emplace_back(texts);
    } catch (const std::exception& error) {
      for (const auto& text : texts) text->fail(error);
    }
  }
}

// The texts of a batch: the first that waits, and those that can be generated together with it.
TextTurns::Texts TextTurns::take() {
  const Generator& model = waiting_.front()->model();
  std::int64_t shortest = std::ssize(waiting_.front()->start().prompt), longest = shortest;
  const std::int64_t most =
      std::min({kMaxTurnRows, kMaxTurnStateBytes / state_bytes(model), kMaxTurnPromptTokens / shortest});
  const std::int64_t difference = model.same_bits_stepwise() ? kMaxPromptDifference : 0;
  Texts texts;
  std::erase_if(waiting_, [&](std::shared_ptr<TurnText>& text) {
    const std::int64_t length = std::ssize(text->start().prompt);
    const std::int64_t low = std::min(shortest, length), high = std::max(longest, length);
    const bool fits = std::ssize(texts) < std::max<std::int64_t>(1, most) && &text->model() == &model;
    if (!fits || high - low > difference) return false;
    shortest = low;
    longest = high;
    texts.push_back(std::move(text));
    return true;
  });
  return texts;
}

}  // namespace maki
