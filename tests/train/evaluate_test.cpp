// The loss of an evaluation against a sum over every target of the text, each predicted from its own window only.
#include "train/loop/evaluate.h"

#include <cmath>

#include "tests/catch.h"
#include "tests/train/small_data.h"
#include "tests/train/text_trainer.h"
#include "train/app/report.h"
#include "train/loop/loss_by_position.h"
#include "train/loop/trainer.h"

using namespace maki;
using namespace maki::tests;

namespace {

Config small_config() {
  Config c;
  c.n_layer = 1;
  c.n_head = 2;
  c.n_embd = 8;
  c.block_size = 5;
  c.dropout = 0.5;          // must not affect an evaluation
  c.label_smoothing = 0.3;  // nor must this
  c.dtype = DType::float64;
  c.batch_size = 3;
  c.val_fraction = 0.5;
  c.eval_batches = 0;
  c.learning_rate = 0.05;
  c.min_lr = 0;
  c.warmup_steps = 0;
  c.lr_decay_steps = 100;
  return c;
}

// Σ −log softmax(logits)[target] over the targets of one window of any length.
double window_loss(const Gpt& model, const std::vector<std::int32_t>& tokens, std::size_t begin, std::size_t length) {
  Tensor ids = empty({1, static_cast<std::int64_t>(length)}, DType::int32);
  std::copy_n(tokens.begin() + static_cast<std::ptrdiff_t>(begin), length, ids.data<std::int32_t>());
  const Tensor logits = model.logits(ids);
  const std::int64_t vocabulary = model.config.vocab_size;
  double sum = 0;
  for (std::size_t t = 0; t < length; ++t) {
    const std::int64_t row = static_cast<std::int64_t>(t) * vocabulary;
    double total = 0;
    for (std::int64_t v = 0; v < vocabulary; ++v) total += std::exp(logits.at(row + v));
    sum += std::log(total) - logits.at(row + tokens[begin + t + 1]);
  }
  return sum;
}

// The mean over the whole text, in nats per target.
double mean_of_windows(const Gpt& model, const std::vector<std::int32_t>& tokens, std::size_t block_size) {
  double sum = 0;
  for (std::size_t begin = 0; begin + 1 < tokens.size(); begin += block_size) {
    sum += window_loss(model, tokens, begin, std::min(block_size, tokens.size() - 1 - begin));
  }
  return sum / static_cast<double>(tokens.size() - 1);
}

}  // namespace

TEST_CASE("the mean loss equals the plain sum, also with a short last window and a short last batch") {
  const Config config = small_config();
  const std::string text = seeded_text(400, "abcdefg \n");
  const Dataset data = dataset_of(text, config);
  TextTrainer trainer(config, data);
  for (int i = 0; i < 10; ++i) trainer.step();
  // A window has 5 targets and a batch 15: sizes around both, and one with a single target.
  constexpr std::size_t kSizes[] = {2, 5, 6, 7, 15, 16, 17, 21, 32, 33, 61, 80};
  for (const std::size_t size : kSizes) {
    INFO(size << " tokens");
    const std::vector<std::int32_t> tokens = data.tokenizer->encode(text.substr(0, size));
    Dataset part;
    part.tokenizer = data.tokenizer;
    part.val = encode_pieces(*data.tokenizer, {std::string_view(text).substr(0, size)});
    const auto loss = mean_loss(trainer.model(), LanguageModelTask(config, part), Part::val, 0, {});
    REQUIRE(loss->targets == static_cast<std::int64_t>(size) - 1);
    REQUIRE(loss->mean == Approx(mean_of_windows(gpt_of(trainer.model()), tokens, 5)).epsilon(1e-12));
  }
}

TEST_CASE("a text that fits into one window takes the time of its tokens, not that of the context") {
  Config config = small_config();
  config.block_size = 64;
  const std::string text = seeded_text(400, "abcdefg \n");
  const Dataset data = dataset_of(text, config);
  TextTrainer trainer(config, data);
  struct Row {
    std::size_t tokens;
    Shape shape;  // of the first batch
  };
  for (const auto& [tokens, shape] :
       {Row{2, {1, 1}}, Row{5, {1, 4}}, Row{64, {1, 63}}, Row{65, {1, 64}}, Row{66, {2, 64}}}) {
    INFO(tokens << " tokens");
    auto part = std::make_shared<Dataset>();
    part->tokenizer = data.tokenizer;
    part->val = encode_pieces(*data.tokenizer, {std::string_view(text).substr(0, tokens)});
    for (const std::int64_t stride : {0, 64}) {  // 64: more than a short text has
      const LanguageModelTask task(config, part, {.stride = stride});
      Batch batch;
      task.fill_eval(Part::val, 0, batch);
      REQUIRE(batch.ids.shape() == shape);
      REQUIRE(batch.targets.shape() == shape);
      const auto loss = mean_loss(trainer.model(), task, Part::val, 0, {});
      REQUIRE(loss->targets == static_cast<std::int64_t>(tokens) - 1);
      REQUIRE(loss->mean == Approx(mean_of_windows(gpt_of(trainer.model()), part->val.ids(), 64)).epsilon(1e-12));
    }
  }
}

TEST_CASE("with a stride the mean loss is that of predicting every token from its overlapping window") {
  const Config config = small_config();
  const std::string text = seeded_text(400, "abcdefg \n");
  const Dataset data = dataset_of(text, config);
  TextTrainer trainer(config, data);
  for (int i = 0; i < 10; ++i) trainer.step();
  auto part = std::make_shared<Dataset>();
  part->tokenizer = data.tokenizer;
  part->val = data.val;
  const std::vector<std::int32_t> tokens = part->val.ids();
  const Gpt& model = gpt_of(trainer.model());
  for (const std::int64_t stride : {1, 2, 4, 5}) {
    const auto n = static_cast<std::size_t>(stride);
    double sum = window_loss(model, tokens, 0, 5);
    for (std::size_t known = 5; known + 1 < tokens.size(); known += n) {
      // The window that predicts the tokens after the first `known`, minus what it repeats.
      const std::size_t begin = known + n - 5, length = std::min<std::size_t>(5, tokens.size() - 1 - begin);
      sum += window_loss(model, tokens, begin, length);
      if (n < 5) sum -= window_loss(model, tokens, begin, 5 - n);
    }
    const LanguageModelTask task(config, part, {.stride = stride});
    const auto loss = mean_loss(trainer.model(), task, Part::val, 0, {});
    INFO("stride " << stride);
    REQUIRE(loss->targets == std::ssize(tokens) - 1);
    REQUIRE(loss->mean == Approx(sum / static_cast<double>(tokens.size() - 1)).epsilon(1e-12));
  }
}

TEST_CASE("losses by position are those of the windows, and add up to the mean loss") {
  Config config = small_config();
  config.dropout = 0;      // the passes are recorded
  config.batch_size = 30;  // more targets than are read from the logits at once
  const Dataset data = dataset_of(seeded_text(402, "abcdefg \n"), config);
  TextTrainer trainer(config, data);
  for (int i = 0; i < 10; ++i) trainer.step();
  const LanguageModelTask task(config, data);
  const std::vector<std::int32_t> tokens = data.val.ids();
  std::vector<PositionLoss> expected(5);
  for (std::size_t begin = 0; begin + 1 < tokens.size(); begin += 5) {
    for (std::size_t t = 0; t < std::min<std::size_t>(5, tokens.size() - 1 - begin); ++t) {
      const double before = t == 0 ? 0 : window_loss(gpt_of(trainer.model()), tokens, begin, t);
      expected[t].sum += window_loss(gpt_of(trainer.model()), tokens, begin, t + 1) - before;
      ++expected[t].targets;
    }
  }
  const auto losses = loss_by_position(trainer.model(), task, Part::val, 0).value();
  REQUIRE(losses.size() == 5);
  double sum = 0;
  for (std::size_t t = 0; t < 5; ++t) {
    INFO("position " << t);
    REQUIRE(losses[t].targets == expected[t].targets);
    REQUIRE(losses[t].sum == Approx(expected[t].sum).epsilon(1e-11));
    sum += losses[t].sum;
  }
  const auto mean = mean_loss(trainer.model(), task, Part::val, 0, {});
  REQUIRE(sum / static_cast<double>(mean->targets) == Approx(mean->mean).epsilon(1e-12));
  REQUIRE_FALSE(loss_by_position(trainer.model(), task, Part::val, 0, [] { return true; }));
}

TEST_CASE("the report by position has ranges for people and all positions for programs") {
  std::vector<PositionLoss> losses;
  for (int i = 0; i < 6; ++i) losses.push_back({.sum = 2.0 * i, .targets = i == 3 ? 0 : 2});
  losses[3].sum = 0;
  const std::vector<ReportLine> list = measure_by_position(losses);
  std::vector<std::string> lines;
  for (const ReportLine& line : list) lines.push_back(line.label + ": " + line.text);
  REQUIRE(lines[1] == "  1: 0.0000 (2 targets)");
  REQUIRE(lines[2] == "  2: 1.0000 (2 targets)");
  REQUIRE(lines[3] == "  3-4: 2.0000 (2 targets)");
  REQUIRE(lines[4] == "  5-6: 4.5000 (4 targets)");
  const auto facts = to_json(list).at("by_position");
  REQUIRE(facts.size() == 5);  // position 4 has no target
  REQUIRE(facts[3].at("position") == 5);
  REQUIRE(facts[3].at("loss") == 4.0);
}

TEST_CASE("a report names the targets, and which batches of the text they are from") {
  const ReportLine whole = measure_extent("whole text", {{.mean = 2, .targets = 1234}, 10, 10}),
                   sample = measure_extent("whole text", {{.mean = 2, .targets = 1}, 3, 10}),
                   first = measure_extent("whole text", {{.mean = 2, .targets = 2}, 3, 10, /*first=*/true});
  REQUIRE(whole.label == "text");
  REQUIRE(whole.text == "whole text, 1,234 targets");
  REQUIRE(sample.text == "whole text, 1 target (3 of 10 batches, spread evenly)");
  REQUIRE(first.text == "whole text, 2 targets (3 of 10 batches, the first ones)");
  REQUIRE(to_json({sample}) == nlohmann::ordered_json{{"targets", 1}, {"batches", 3}, {"batches_of_text", 10}});
}

TEST_CASE("an evaluation measures the training text and the validation text, and does not confuse them") {
  const Config config = small_config();
  // The two halves have no letter in common.
  const std::string train = seeded_text(84, "abcd"), val = seeded_text(84, "efgh");
  const Dataset data = dataset_of(train + val, config);
  TextTrainer trainer(config, data);
  for (int i = 0; i < 10; ++i) trainer.step();
  const EvalReport report = trainer.evaluate().value();
  const double train_loss = mean_of_windows(gpt_of(trainer.model()), data.tokenizer->encode(train), 5),
               val_loss = mean_of_windows(gpt_of(trainer.model()), data.tokenizer->encode(val), 5);
  REQUIRE(val_loss > train_loss + 0.5);
  REQUIRE(report.step == 10);
  REQUIRE(report.train_loss == Approx(train_loss).epsilon(1e-12));
  REQUIRE(report.val_loss.value() == Approx(val_loss).epsilon(1e-12));
}

TEST_CASE(
    "a sample of a language model has a hundred tokens, and is a function of the weights, the seed and the step") {
  const Config config = small_config();
  const Dataset data = dataset_of(seeded_text(168, "abcdefg \n"), config);
  const TextTrainer trainer(config, data);
  const auto sample = [&](std::uint64_t seed, std::int64_t step) {
    return trainer.task().sample(trainer.model(), seed, step, {}).value();
  };
  REQUIRE(sample(1, 10).size() == 100);
  REQUIRE(sample(1, 10) == sample(1, 10));
  REQUIRE(sample(1, 10) != sample(1, 20));
  REQUIRE(sample(1, 10) != sample(2, 10));
  REQUIRE_FALSE(trainer.task().sample(trainer.model(), 1, 10, [] { return true; }));
}

TEST_CASE("an evaluation changes no weight and no random number of the following steps") {
  const Config config = small_config();
  const Dataset data = dataset_of(seeded_text(168, "abcdefg \n"), config);
  TextTrainer straight(config, data), evaluated(config, data);
  for (int i = 0; i < 4; ++i) {
    straight.step();
    evaluated.evaluate();
    evaluated.step();
  }
  for (std::int64_t i = 0; i < straight.store().values().numel(); ++i) {
    REQUIRE(straight.store().values().at(i) == evaluated.store().values().at(i));
  }
}
