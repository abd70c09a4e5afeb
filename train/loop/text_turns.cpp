#include "train/loop/text_turns.h"

#include <algorithm>
#include <set>

namespace maki {
namespace {

constexpr std::int64_t kMaxTurnRows = 32;  // texts of a batch
// What a batch reads of its prompts in one step, which delays the tokens of the others.
constexpr std::int64_t kMaxTurnReadTokens = 4096;
// Texts read their prompts together until the shortest one ends, and from then on one token at a time.
constexpr std::int64_t kMaxPromptDifference = 32;

struct StateSize {
  std::int64_t bytes = 1, capacity = 0;
};

// Of one text.
StateSize state_size(const Generator& model) {
  const std::unique_ptr<State> state = model.start(1);
  StateSize size{.capacity = state->capacity()};
  for (const auto& [name, values] : state->tensors()) {
    if (*values) size.bytes += values->numel() * size_of(values->dtype());
  }
  return size;
}

std::vector<GenerationBatch::Text> starts(const std::vector<std::shared_ptr<TurnText>>& texts) {
  std::vector<GenerationBatch::Text> list;
  for (const auto& text : texts) list.push_back(text->start());
  return list;
}

}  // namespace

TextTurns::Batch::Batch(Texts its_texts, std::int64_t bytes)
    : texts(std::move(its_texts)), state_bytes(bytes), generation(texts.front()->model(), starts(texts)) {}

void TextTurns::step() {
  begin_batch();
  for (Batch& batch : batches_) step(batch);
  std::erase_if(batches_, [](const Batch& batch) { return batch.texts.empty() || !batch.generation.running(); });
}

void TextTurns::step(Batch& batch) {
  const auto wanted = [](const auto& text) { return text && text->wanted(); };
  if (std::ranges::none_of(batch.texts, wanted)) {
    changed_ = true;
    return batch.texts.clear();
  }
  try {
    batch.generation.step(
        [&](std::size_t i, std::int32_t token, const Tensor& logits) { return batch.texts[i]->add(token, logits); },
        [&](std::size_t i, const Generated& how) {
          batch.texts[i]->end(how);
          batch.texts[i].reset();
          changed_ = true;
        });
  } catch (const std::exception& error) {
    for (const auto& text : batch.texts) {
      if (text) text->fail(error);
    }
    batch.texts.clear();
    changed_ = true;
  }
}

// Begins one batch at most, so that the texts that are being generated wait for the beginning of one prompt only.
void TextTurns::begin_batch() {
  if (waiting_.empty() || !changed_) return;
  std::erase_if(waiting_, [](const auto& text) { return !text->wanted(); });
  Texts texts;
  try {
    const std::int64_t state_bytes = choose(texts);
    if (!texts.empty()) batches_.emplace_back(texts, state_bytes);
    changed_ = !texts.empty();
  } catch (const std::exception& error) {
    for (const auto& text : texts) text->fail(error);
  }
  std::erase_if(waiting_, [&](const auto& text) { return std::ranges::find(texts, text) != texts.end(); });
}

// Chooses the first text that may begin, and those that can be generated together with it: none if it has to wait.
// Returns the bytes of the state of each. If it throws, that is the fault of the texts that have been chosen.
std::int64_t TextTurns::choose(Texts& texts) const {
  std::int64_t left = max_state_bytes_;
  std::set<const void*> requests;  // that have texts in batches
  for (const Batch& batch : batches_) {
    for (const auto& text : batch.texts) {
      if (!text) continue;
      left -= batch.state_bytes;
      requests.insert(text->request());
    }
  }
  const auto may_begin = [&](const auto& text) { return !requests.contains(text->request()); };
  const auto first = std::ranges::find_if(waiting_, may_begin);
  if (first == waiting_.end()) return 0;
  texts.push_back(*first);
  const Generator& model = (*first)->model();
  const StateSize state = state_size(model);
  if (state.bytes > left && !batches_.empty()) {
    texts.clear();
    return 0;
  }
  const auto length_of = [&](const TurnText& text) {
    return std::min<std::int64_t>(std::ssize(text.start().prompt), state.capacity);
  };
  std::int64_t shortest = length_of(**first), longest = shortest;
  const std::int64_t read = std::clamp<std::int64_t>(shortest, 1, GenerationBatch::kMaxReadTokens);
  const std::int64_t most = std::min({kMaxTurnRows, left / 4 / state.bytes, kMaxTurnReadTokens / read});
  const std::int64_t difference = model.same_bits_stepwise() ? kMaxPromptDifference : 0;
  for (auto text = first + 1; text != waiting_.end() && std::ssize(texts) < most; ++text) {
    if (&(*text)->model() != &model || !may_begin(*text)) continue;
    const std::int64_t length = length_of(**text);
    if (std::max(longest, length) - std::min(shortest, length) > difference) continue;
    shortest = std::min(shortest, length);
    longest = std::max(longest, length);
    texts.push_back(*text);
  }
  return state.bytes;
}

}  // namespace maki
