// The log-probabilities of a text from one pass are those of the steps in which it would be generated.
#include "train/loop/score_tokens.h"

#include "tests/catch.h"
#include "tests/train/every_small_model.h"
#include "train/run/config/tasks.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("a text is scored in one pass as in generation, for every kind of model that continues texts",
          "[score_tokens_test]") {
  const std::vector<std::int32_t> ids = {3, 1, 4, 1, 5, 9, 2, 6};
  int kinds = 0;
  for (SmallModel small : every_small_model()) {
    const TaskRule& rule = task_rule(small.config);
    if (!rule.writes() || rule.reads_source()) continue;
    INFO(small.name);
    ++kinds;
    small.config.dropout = 0;
    const SmallTrainer trained(small.config);
    const Generator& model = *trained.trainer.model().as_generator();
    const std::vector<TokenLogProbabilities> scores = score_tokens(model, ids, 3);
    REQUIRE(scores.size() == ids.size() - 1);
    const std::unique_ptr<State> state = model.start(1);
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const Tensor logits = model.next_logits(tensor<std::int32_t>({ids[i]}, {1, 1}), *state);
      const TokenLogProbabilities expected = log_probabilities(logits, ids[i + 1], 3);
      REQUIRE(scores[i].drawn.id == ids[i + 1]);
      REQUIRE(scores[i].drawn.value == Approx(expected.drawn.value).margin(1e-5));
      for (std::size_t k = 0; k < 3; ++k) REQUIRE(scores[i].top[k].value == Approx(expected.top[k].value).margin(1e-5));
    }
  }
  REQUIRE(kinds >= 4);
  const SmallTrainer trained(small_model_config("gpt"));
  REQUIRE(score_tokens(trained.trainer.model(), std::vector<std::int32_t>{1}, 3).empty());
}
