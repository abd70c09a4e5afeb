// Texts that come while others are being generated are those that are generated alone.
#include "train/loop/text_turns.h"

#include <algorithm>
#include <cmath>

#include "autograd/core/storage.h"
#include "nn/models/linear.h"
#include "tests/catch.h"
#include "tests/nn/small_gpt.h"

using namespace maki;
using namespace maki::tests;

namespace {

class Recorded final : public TurnText {
 public:
  Recorded(const Generator& model, std::uint64_t number)
      : prompt(1 + number % 5, static_cast<std::int32_t>(number % 7)),
        max_tokens(3 + static_cast<std::int64_t>(number % 20)),
        model_(model),
        number_(number) {}
  const Generator& model() const override { return model_; }
  GenerationBatch::Text start() const override { return {prompt, number_, max_tokens, sampling()}; }
  const void* request() const override { return request_of; }
  bool wanted() const override { return wants; }
  bool add(std::int32_t token, const Tensor&) override {
    ids.push_back(token);
    return goes_on(token, ids.size());
  }
  void end(const Generated& how) override {
    REQUIRE(how.tokens == std::ssize(ids));
    ++ends;
  }
  void fail(const std::exception& error) override {
    REQUIRE(std::current_exception() != nullptr);
    out_of_memory = dynamic_cast<const OutOfMemoryError*>(&error) != nullptr;
    ++failures;
  }

  std::vector<std::int32_t> alone() const {
    std::vector<std::int32_t> drawn;
    generate(model_, prompt, {.max_tokens = max_tokens, .sampling = sampling()}, number_, [&](std::int32_t token) {
      drawn.push_back(token);
      return goes_on(token, drawn.size());
    });
    return drawn;
  }
  bool begun() const { return !ids.empty(); }
  std::vector<std::int32_t> prompt;
  std::int64_t max_tokens;
  const void* request_of = this;  // a request of its own
  bool wants = true, stops = true, out_of_memory = false;
  int ends = 0, failures = 0;
  std::vector<std::int32_t> ids;

 private:
  bool goes_on(std::int32_t token, std::size_t tokens) const { return !stops || token != 5 || tokens < 4; }
  Sampling sampling() const {
    Sampling own{.temperature = 0.5 + 0.1 * static_cast<double>(number_ % 9), .seed = number_ / 3};
    if (number_ % 4 == 0) own.frequency_penalty = 0.3;
    return own;
  }

  const Generator& model_;
  std::uint64_t number_;
};

using RecordedTexts = std::vector<std::shared_ptr<Recorded>>;

// Texts of one request, all with a prompt of one token, that end after `max_tokens`.
RecordedTexts long_texts(const Generator& model, std::size_t count, std::int64_t max_tokens) {
  RecordedTexts texts;
  for (std::size_t i = 0; i < count; ++i) {
    texts.push_back(std::make_shared<Recorded>(model, 5 * i));
    texts[i]->request_of = texts[0].get();
    texts[i]->max_tokens = max_tokens;
    texts[i]->stops = false;
  }
  return texts;
}

void add_texts(TextTurns& turns, const RecordedTexts& texts) {
  for (const auto& text : texts) turns.add(text);
}

// How many are being generated.
std::int64_t count_running(const RecordedTexts& texts) {
  return std::ranges::count_if(texts, [](const auto& text) { return text->begun() && text->ends == 0; });
}

struct RandomGpt {
  RandomGpt() {
    store.seal(1);
    randomize(store, 5);
  }
  ParameterStore store{DType::float32};
  GptModel model{Scope(store), kSmall};
};

// There is no memory for its states.
class NoMemory final : public Generator {
 public:
  const char* kind() const override { return "no memory"; }
  Tensor loss(const Batch&, const CrossEntropy&, State*) const override { return {}; }
  double attention_flop(std::int64_t) const override { return 0; }
  std::int64_t activation_bytes(std::int64_t, std::int64_t) const override { return 0; }
  std::unique_ptr<State> start(std::int64_t, const Tensor&, const Tensor&) const override {
    throw OutOfMemoryError("no memory");
  }
  Tensor next_logits(const Tensor&, State&) const override { return {}; }
};

void require_the_same_in_turns(const Generator& model) {
  TextTurns turns;
  RecordedTexts texts;
  for (std::uint64_t i = 0; i < 90; ++i) {
    texts.push_back(std::make_shared<Recorded>(model, i));
    texts.back()->request_of = texts[i - i % 5].get();
    turns.add(texts.back());
    if (i % 3 == 0) turns.step();
  }
  texts[89]->wants = false;  // it has not begun
  while (!turns.idle()) turns.step();
  for (std::size_t i = 0; i < 89; ++i) {
    REQUIRE((texts[i]->ends == 1 && texts[i]->failures == 0));
    REQUIRE(texts[i]->ids == texts[i]->alone());
  }
  REQUIRE((texts[89]->ends == 0 && texts[89]->ids.empty()));
}

}  // namespace

TEST_CASE("texts with options of their own that take turns are those that are generated alone", "[text_turns_test]") {
  require_the_same_in_turns(RandomGpt().model);
  ParameterStore recurrent(DType::float32);
  TransformerConfig config = kSmall;
  config.positions = Positions::rotary;
  const LinearModel linear(Scope(recurrent), {config, parse_attention("random:7")});
  recurrent.seal(1);
  require_the_same_in_turns(linear);
}

TEST_CASE("a text that a long one was begun before does not wait for it, and one that fails ends its batch only",
          "[text_turns_test]") {
  ParameterStore store(DType::float32), diverged(DType::float32);
  const GptModel model(Scope(store), kSmall), broken(Scope(diverged), kSmall);
  store.seal(1);
  diverged.seal(1);
  std::ranges::fill(std::span(diverged.values().data<float>(), static_cast<std::size_t>(diverged.values().numel())),
                    std::nanf(""));
  const auto longest = std::make_shared<Recorded>(model, 19), shortest = std::make_shared<Recorded>(model, 20),
             failing = std::make_shared<Recorded>(broken, 19);
  TextTurns turns;
  turns.add(longest);
  turns.step();
  turns.add(shortest);
  turns.add(failing);
  for (int i = 0; i < 4; ++i) turns.step();
  REQUIRE(shortest->ends == 1);
  REQUIRE(longest->ends == 0);
  REQUIRE((failing->failures == 1 && failing->ends == 0));
  while (!turns.idle()) turns.step();
  REQUIRE(longest->ids == longest->alone());
}

TEST_CASE("many long texts, of one request or of many, leave room for others", "[text_turns_test]") {
  const RandomGpt small;
  for (const bool one_request : {true, false}) {
    const RecordedTexts texts = long_texts(small.model, 128, 1'000'000);
    TextTurns turns;
    for (const auto& text : texts) {
      if (!one_request) text->request_of = text.get();
      turns.add(text);
    }
    for (int i = 0; i < 6; ++i) turns.step();
    REQUIRE(count_running(texts) == (one_request ? 32 : 128));
    const auto other = std::make_shared<Recorded>(small.model, 20);
    turns.add(other);
    for (int i = 0; i < 3; ++i) turns.step();
    REQUIRE(other->ends == 1);
    REQUIRE(other->ids == other->alone());
    // What nobody waits for is dropped, whether it has begun or not.
    for (const auto& text : texts) text->wants = false;
    const std::size_t drawn = texts[0]->ids.size();
    for (int i = 0; i < 2; ++i) turns.step();
    REQUIRE(turns.idle());
    REQUIRE(texts[0]->ids.size() == drawn);
  }
}

TEST_CASE("the states of all texts have a limit, of which each batch leaves some", "[text_turns_test]") {
  const RandomGpt small;
  std::int64_t state_bytes = 1;
  const std::unique_ptr<State> state = small.model.start(1);
  for (const auto& [name, values] : state->tensors()) state_bytes += values->numel() * size_of(values->dtype());
  TextTurns turns(8 * state_bytes);
  RecordedTexts texts[4];
  const std::int64_t begin[] = {2, 1, 1, 1};  // a quarter of 8, 6, 5 and 4
  for (std::size_t i = 0; i < 4; ++i) {
    texts[i] = long_texts(small.model, 5, 20);
    add_texts(turns, texts[i]);
    turns.step();
    REQUIRE(count_running(texts[i]) == begin[i]);
  }
  RecordedTexts all;
  for (const RecordedTexts& list : texts) all.insert(all.end(), list.begin(), list.end());
  std::int64_t most = 0;
  for (; !turns.idle(); turns.step()) most = std::max(most, count_running(all));
  REQUIRE(most == 5);
  for (const auto& text : all) REQUIRE((text->ends == 1 && text->ids == text->alone()));

  TextTurns tiny(1);  // less than one state
  const RecordedTexts one_by_one = long_texts(small.model, 3, 4);
  for (const auto& text : one_by_one) text->request_of = text.get();
  add_texts(tiny, one_by_one);
  for (; !tiny.idle(); tiny.step()) REQUIRE(count_running(one_by_one) <= 1);
  for (const auto& text : one_by_one) REQUIRE(text->ids == text->alone());
}

TEST_CASE("of a prompt that is longer than the context, only what is read counts for a batch", "[text_turns_test]") {
  const RandomGpt small;
  RecordedTexts texts = long_texts(small.model, 32, 3);
  for (std::size_t i = 0; i < texts.size(); ++i) texts[i]->prompt.assign(5000 + 100 * i, 1);
  TextTurns turns;
  add_texts(turns, texts);
  turns.step();
  REQUIRE(count_running(texts) == 32);
  while (!turns.idle()) turns.step();
  for (const auto& text : texts) REQUIRE(text->ids == text->alone());
}

TEST_CASE("others are generated while a long prompt is being read", "[text_turns_test]") {
  ParameterStore store(DType::float32);
  TransformerConfig config = kSmall;
  config.positions = Positions::rotary;
  const LinearModel model(Scope(store), {config, parse_attention("elu")});
  store.seal(1);
  const auto reading = std::make_shared<Recorded>(model, 1), other = std::make_shared<Recorded>(model, 20);
  reading->prompt.assign(4 * GenerationBatch::kMaxReadTokens + 1, 2);
  TextTurns turns;
  turns.add(reading);
  turns.step();
  turns.add(other);
  for (int i = 0; i < 3; ++i) turns.step();
  REQUIRE((other->ends == 1 && !reading->begun()));
  turns.step();
  REQUIRE(reading->begun());
  while (!turns.idle()) turns.step();
  REQUIRE(reading->ids == reading->alone());
}

TEST_CASE("a text for whose state there is no memory fails, and no other", "[text_turns_test]") {
  const RandomGpt small;
  const NoMemory none;
  const auto before = std::make_shared<Recorded>(small.model, 1), failing = std::make_shared<Recorded>(none, 2),
             after = std::make_shared<Recorded>(small.model, 3);
  TextTurns turns;
  turns.add(before);
  turns.step();
  turns.add(failing);
  turns.add(after);
  while (!turns.idle()) turns.step();
  REQUIRE((failing->failures == 1 && failing->out_of_memory && failing->ends == 0));
  for (const auto& text : {before, after}) REQUIRE((text->ends == 1 && text->ids == text->alone()));
}
