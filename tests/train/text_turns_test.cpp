// Texts that come while others are being generated are those that are generated alone.
#include "train/loop/text_turns.h"

#include <algorithm>
#include <cmath>

#include "nn/models/linear.h"
#include "tests/catch.h"
#include "tests/nn/small_gpt.h"

using namespace maki;
using namespace maki::tests;

namespace {

class Recorded final : public TurnText {
 public:
  Recorded(const Generator& model, std::uint64_t number)
      : model_(model), number_(number), prompt_(1 + number % 5, static_cast<std::int32_t>(number % 7)) {}
  const Generator& model() const override { return model_; }
  GenerationBatch::Text start() const override { return {prompt_, number_, max_tokens(), sampling()}; }
  bool wanted() const override { return wants; }
  bool add(std::int32_t token, const Tensor&) override {
    ids.push_back(token);
    return token != 5 || ids.size() < 4;
  }
  void end(const Generated& how) override {
    REQUIRE(how.tokens == std::ssize(ids));
    ++ends;
  }
  void fail(const std::exception&) override { ++failures; }

  std::vector<std::int32_t> alone() const {
    std::vector<std::int32_t> drawn;
    generate(model_, prompt_, {.max_tokens = max_tokens(), .sampling = sampling()}, number_, [&](std::int32_t token) {
      drawn.push_back(token);
      return token != 5 || drawn.size() < 4;
    });
    return drawn;
  }
  bool wants = true;
  int ends = 0, failures = 0;
  std::vector<std::int32_t> ids;

 private:
  std::int64_t max_tokens() const { return 3 + static_cast<std::int64_t>(number_ % 20); }
  Sampling sampling() const {
    Sampling own{.temperature = 0.5 + 0.1 * static_cast<double>(number_ % 9), .seed = number_ / 3};
    if (number_ % 4 == 0) own.frequency_penalty = 0.3;
    return own;
  }

  const Generator& model_;
  std::uint64_t number_;
  std::vector<std::int32_t> prompt_;
};

void require_the_same_in_turns(const Generator& model) {
  TextTurns turns;
  std::vector<std::shared_ptr<Recorded>> texts;
  for (std::uint64_t i = 0; i < 90; ++i) {
    texts.push_back(std::make_shared<Recorded>(model, i));
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
  ParameterStore store(DType::float32);
  const GptModel gpt(Scope(store), kSmall);
  store.seal(1);
  randomize(store, 5);
  require_the_same_in_turns(gpt);
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
