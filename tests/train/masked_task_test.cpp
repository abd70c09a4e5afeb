// The batches and measurements of masked language models.
#include "train/loop/masked_task.h"

#include <cmath>
#include <set>

#include "data/dataset/masking.h"
#include "nn/models/encoder.h"
#include "tests/catch.h"
#include "tests/nn/small_gpt.h"
#include "tests/train/small_data.h"
#include "train/app/report.h"
#include "train/loop/evaluate.h"
#include "train/loop/trainer.h"

using namespace maki;
using namespace maki::tests;

namespace {

Config small_encoder() {
  Config c;
  c.model = "encoder";
  c.task = "masked";
  c.n_layer = 1;
  c.n_head = 2;
  c.n_embd = 8;
  c.block_size = 20;
  c.batch_size = 3;
  c.grad_accum = 2;
  c.val_fraction = 0.4;
  c.lr_decay_steps = 10;
  return c;
}

// 200 characters, of which 80 are for validation.
MaskedTask task_of(const Config& config) {
  return {config, std::make_shared<const Dataset>(dataset_of(seeded_text(200, "abcdefgh"), config))};
}

std::vector<std::int32_t> numbers(const Tensor& x) {
  const auto values = x.values<std::int32_t>();
  return {values.begin(), values.end()};
}

Batch batch_of(const MaskedTask& task, std::int64_t step, std::int64_t micro) {
  Batch batch;
  task.fill(step, micro, batch);
  return batch;
}

Batch eval_batch(const MaskedTask& task, std::int64_t i) {
  Batch batch;
  task.fill_eval(Part::val, i, batch);
  return batch;
}

// Row `row` of a [B, T] tensor.
std::vector<std::int32_t> row_of(const Tensor& x, std::int64_t row) {
  const std::vector<std::int32_t> all = numbers(x);
  const std::int64_t length = x.shape()[1];
  return {all.begin() + row * length, all.begin() + (row + 1) * length};
}

}  // namespace

TEST_CASE("a masked batch is the window of the language model with hidden tokens") {
  const Config config = small_encoder();
  const MaskedTask task = task_of(config);
  const LanguageModelTask windows(config,
                                  std::make_shared<const Dataset>(dataset_of(seeded_text(200, "abcdefgh"), config)));
  REQUIRE(task.vocab_sizes().target == windows.vocab_sizes().target + 1);
  const auto mask = static_cast<std::int32_t>(windows.vocab_sizes().target);
  std::int64_t hidden = 0;
  for (std::int64_t step = 0; step < 5; ++step) {
    std::int64_t targets = 0;
    for (std::int64_t micro = 0; micro < config.grad_accum; ++micro) {
      const Batch batch = batch_of(task, step, micro);
      Batch window;
      windows.fill(step, micro, window);
      const auto ids = numbers(batch.ids), to = numbers(batch.targets), original = numbers(window.ids);
      REQUIRE(ids.size() == original.size());
      for (std::size_t i = 0; i < ids.size(); ++i) {
        REQUIRE((to[i] == kIgnoredTarget ? ids[i] : to[i]) == original[i]);
        if (ids[i] == mask) ++hidden;
        targets += to[i] == kIgnoredTarget ? 0 : 1;
      }
      REQUIRE(batch.target_count == 18);
    }
    REQUIRE(targets == task.targets(step));
  }
  REQUIRE(hidden > 50);
  REQUIRE(task.tokens_in_step(0) == windows.tokens_in_step(0));
}

TEST_CASE("what a training batch hides is a function of seed, step and micro-batch") {
  const Config config = small_encoder();
  const MaskedTask task = task_of(config);
  const auto targets = [](const MaskedTask& t, std::int64_t step, std::int64_t micro) {
    std::vector<bool> predicted;  // without the text
    for (const std::int32_t id : numbers(batch_of(t, step, micro).targets)) predicted.push_back(id != kIgnoredTarget);
    return predicted;
  };
  Config other = config;
  other.seed = 5;
  REQUIRE(targets(task, 3, 1) == targets(task_of(config), 3, 1));
  REQUIRE(targets(task, 3, 1) != targets(task, 3, 0));
  REQUIRE(targets(task, 3, 1) != targets(task, 2, 1));
  REQUIRE(targets(task, 3, 1) != targets(task_of(other), 3, 1));
}

TEST_CASE("what an evaluation hides depends neither on the seed nor on the batch size") {
  const Config config = small_encoder();
  Config other = config;
  other.seed = 5;
  other.batch_size = 1;
  const MaskedTask task = task_of(config), single = task_of(other);
  REQUIRE(task.eval_batches(Part::val) == 2);
  REQUIRE(single.eval_batches(Part::val) == 4);
  for (std::int64_t window = 0; window < 4; ++window) {
    const Batch batch = eval_batch(task, window / 3), alone = eval_batch(single, window);
    REQUIRE(row_of(batch.ids, window % 3) == row_of(alone.ids, 0));
    REQUIRE(row_of(batch.targets, window % 3) == row_of(alone.targets, 0));
  }
  REQUIRE(row_of(eval_batch(task, 0).targets, 0) != row_of(eval_batch(task, 0).targets, 1));
}

TEST_CASE("the padding of the last window is invisible and predicts nothing") {
  const Config config = small_encoder();
  const MaskedTask task = task_of(config);
  Batch batch;
  task.fill_eval(Part::val, 0, batch);
  REQUIRE(!batch.source_mask);
  REQUIRE(batch.target_count == 9);
  task.fill_eval(Part::val, 1, batch);  // 79 tokens: 20 + 20 + 20, 19
  REQUIRE(batch.ids.shape() == Shape{1, 20});
  REQUIRE(batch.target_count == masked_count(19, kEvaluatedPercent));
  const auto visible = numbers(batch.source_mask);
  REQUIRE(std::ranges::count(visible, 1) == 19);
  REQUIRE(visible.back() == 0);
  REQUIRE(numbers(batch.targets).back() == kIgnoredTarget);
  task.fill_eval(Part::val, 0, batch);
  REQUIRE(!batch.source_mask);
}

TEST_CASE("the accuracy of a masked language model counts its first choices") {
  const Config config = small_encoder();
  const MaskedTask task(config, std::make_shared<const Dataset>(dataset_of(seeded_text(2000, "abcdefgh"), config)));
  Trainer trainer(config, task);
  randomize(trainer.store(), 5);  // so that its choices differ
  std::set<std::int64_t> choices;
  const Encoder& encoder = *trainer.model().as_encoder();
  std::int64_t correct = 0, targets = 0;
  double loss = 0;
  for (std::int64_t b = 0; b < task.eval_batches(Part::val); ++b) {
    const Batch batch = eval_batch(task, b);
    const Tensor logits = encoder.logits(batch.ids, batch.source_mask);
    const auto to = numbers(batch.targets);
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (to[i] == kIgnoredTarget) continue;
      const float* const row = logits.data<float>() + i * 9;
      double sum = 0;
      for (int v = 0; v < 9; ++v) sum += std::exp(static_cast<double>(row[v]));
      loss += std::log(sum) - static_cast<double>(row[to[i]]);
      const std::int64_t choice = std::max_element(row, row + 9) - row;
      choices.insert(choice);
      correct += choice == to[i] ? 1 : 0;
      ++targets;
    }
  }
  REQUIRE(choices.size() > 4);
  const MeanLoss mean = mean_loss(trainer.model(), task, Part::val, 0, {}).value();
  REQUIRE(mean.targets == targets);
  REQUIRE(mean.mean == Approx(loss / static_cast<double>(targets)).epsilon(1e-5));
  const std::int64_t batches = task.eval_batches(Part::val);
  const nlohmann::ordered_json facts = to_json(task.measure(trainer.model(), {mean, batches, batches}, {}, {}));
  REQUIRE(facts.at("correct") == correct);
  REQUIRE(facts.at("accuracy").get<double>() == static_cast<double>(correct) / static_cast<double>(targets));
  REQUIRE(facts.at("perplexity").get<double>() == Approx(std::exp(mean.mean)));
}

TEST_CASE("the best possible loss of a text is not that of its hidden tokens") {
  const Config config = small_encoder();
  Dataset data = dataset_of(seeded_text(200, "abcdefgh"), config);
  data.best_possible_loss = 1.5;
  const MaskedTask task(config, std::make_shared<const Dataset>(std::move(data)));
  REQUIRE(task.data_state().best_possible_loss == 0);
  REQUIRE(!task.best_possible_loss());
  REQUIRE(task.data_state().vocab_size == 9);
}
