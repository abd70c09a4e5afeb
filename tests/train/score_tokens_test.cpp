// The probabilities of the tokens of a text from one forward pass against those of generation, one token after the
// other.
#include "train/loop/score_tokens.h"

#include <cmath>

#include "nn/generate/sampler.h"
#include "tests/train/small_loaded.h"

using namespace maki;
using namespace maki::tests;

namespace {

const std::vector<std::int32_t> kScored = {0, 3, 3, 1, 5, 2, 0, 4, 1, 1, 3, 0, 2};  // block_size + 1

// What generation thinks of each token after the first.
std::vector<TokenLogProbabilities> scored_stepwise(const LoadedModel& loaded, std::int64_t top) {
  std::vector<TokenLogProbabilities> scores;
  const std::unique_ptr<State> state = loaded.generator().start(1);
  for (std::size_t i = 0; i + 1 < kScored.size(); ++i) {
    const Tensor logits = loaded.generator().next_logits(tensor<std::int32_t>({&kScored[i], 1}, {1, 1}), *state);
    scores.push_back(log_probabilities(logits, kScored[i + 1], top));
  }
  return scores;
}

}  // namespace

TEST_CASE("tokens are scored as generation does, for every kind of model and option") {
  const TemporaryFolder folder;
  for (const SmallModel& small : small_language_models()) {
    INFO(small.name);
    const LoadedModel loaded(write_small_model(folder / "small.maki", small.config));
    const auto scores = score_tokens(loaded, kScored, 2), expected = scored_stepwise(loaded, 2);
    REQUIRE(scores.size() == kScored.size() - 1);
    REQUIRE(scores.size() == expected.size());
    for (std::size_t i = 0; i < scores.size(); ++i) {
      REQUIRE(scores[i].drawn.id == kScored[i + 1]);
      REQUIRE(scores[i].drawn.value == Approx(expected[i].drawn.value).margin(2e-5));
      REQUIRE(scores[i].top.size() == 2);
      for (std::size_t k = 0; k < 2; ++k) {
        REQUIRE(scores[i].top[k].id == expected[i].top[k].id);
        REQUIRE(scores[i].top[k].value == Approx(expected[i].top[k].value).margin(2e-5));
      }
    }
  }
}

TEST_CASE("a single token has no score, and what cannot be scored is refused") {
  const TemporaryFolder folder;
  const LoadedModel loaded(write_small_model(folder / "small.maki", small_language_models().front().config));
  REQUIRE(score_tokens(loaded, std::vector<std::int32_t>{2}).empty());
  REQUIRE_THROWS_WITH(score_tokens(loaded, {}),
                      "tokens: a text that is scored must have 1 to 13 tokens; got 0; give a "
                      "text of that length");
  REQUIRE_THROWS_WITH(score_tokens(loaded, std::vector<std::int32_t>(14, 1)), ContainsSubstring("got 14; give"));
  REQUIRE_THROWS_AS(score_tokens(loaded, std::vector<std::int32_t>{0, 77}), Error);
  REQUIRE_THROWS_AS(score_tokens(loaded, kScored, -1), Error);
  for (const std::string name : {"encoder", "classify", "seq2seq"}) {
    INFO(name);
    const LoadedModel other(golden_checkpoint(name));
    REQUIRE_THROWS_WITH(score_tokens(other, kScored), ContainsSubstring("does not predict each token of a text"));
  }
}

TEST_CASE("a model that has diverged scores no token") {
  const TemporaryFolder folder;
  LoadedModel loaded(write_small_model(folder / "small.maki", small_language_models().front().config), DType::float64);
  for (double& value : loaded.store.values().values<double>()) value = std::nan("");
  loaded.store.mark_changed();
  REQUIRE_THROWS_AS(score_tokens(loaded, kScored), BadLogitsError);
}
