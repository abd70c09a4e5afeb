// What an evaluation measures: batches spread evenly over a text, the same ones each time, and the whole text at the
// end.
#include <cmath>

#include "tests/metrics_lines.h"
#include "tests/train/captured_run.h"
#include "tests/train/small_data.h"
#include "tests/train/text_trainer.h"
#include "train/loop/evaluate.h"
#include "train/loop/language_model_task.h"

using namespace maki;
using namespace maki::tests;

namespace {

// A text whose first half is much easier than its second.
std::string uneven_text() { return std::string(2000, 'a') + seeded_text(2000, "abcdefghijklmnopqrst", 5); }

// 60 steps on a text of 500 batches, 125 of them for validation, with an evaluation every ten steps.
Config measured_config() {
  Config config = smallest_config();
  config.n_embd = 8;
  config.block_size = 4;
  config.batch_size = 2;
  config.val_fraction = 0.25;
  config.max_steps = 60;
  config.lr_decay_steps = 60;
  config.eval_interval = config.checkpoint_interval = 10;
  config.warmup_steps = 0;
  config.learning_rate = 0.01;
  return config;
}

}  // namespace

TEST_CASE("samples are spread evenly over a text, ascending, each at most once, and all of them if all are requested") {
  for (const std::int64_t count : {1, 2, 3, 7, 10, 97, 1000}) {
    for (std::int64_t taken = 1; taken <= count; ++taken) {
      std::int64_t before = -1;
      for (std::int64_t i = 0; i < taken; ++i) {
        const std::int64_t index = spread_index(i, taken, count);
        REQUIRE(index == (2 * i + 1) * count / (2 * taken));
        REQUIRE(index > before);
        REQUIRE(index < count);
        if (taken == count) REQUIRE(index == i);
        before = index;
      }
    }
  }
  // No product exceeds 64 bits.
  REQUIRE(spread_index(999'999'999, 1'000'000'000, 1'000'000'000'000) == 999'999'999'500);
  REQUIRE_FALSE(error_message<Error>([] { spread_index(3, 3, 10); }).empty());
}

TEST_CASE("batches without a target are no sample: all are taken instead") {
  Config config = smallest_config();
  config.block_size = config.batch_size = 1;
  Dataset data;
  data.tokenizer = make_tokenizer("char", "ab");
  data.val = encode_pieces(*data.tokenizer, {"ab", "ab"});  // the second of three windows ends with a text
  const LanguageModelTask task(config, data);
  ParameterStore store(DType::float32);
  const auto model = task.make_model(Scope(store));
  store.seal(1);
  const MeanLoss whole = mean_loss(*model, task, Part::val, 0, {}).value();
  REQUIRE(whole.targets == 2);
  REQUIRE(mean_loss(*model, task, Part::val, 1, {}).value().mean == whole.mean);
  const FullAndSampledLoss both = full_and_sampled_loss(*model, task, Part::val, 1, {}).value();
  REQUIRE(both.whole.mean == whole.mean);
  REQUIRE(both.sample.mean == whole.mean);
}

TEST_CASE("the automatic sample costs at most a tenth of the training between two evaluations") {
  Config config;
  for (const std::int64_t interval : {1, 2, 7, 10, 100, 250, 1000}) {
    for (const std::int64_t accumulated : {1, 3, 8}) {
      config.eval_interval = interval;
      config.grad_accum = accumulated;
      const EvalSample sample = eval_sample(config);
      INFO(interval << " steps of " << accumulated << ": " << sample.train << " + " << sample.val);
      REQUIRE(sample.train >= 1);
      REQUIRE(sample.train <= 20);
      REQUIRE(sample.val >= 1);
      // A forward pass is a third of a training step.
      const std::int64_t affordable = 3 * interval * accumulated / 10;
      if (affordable >= 2) REQUIRE(sample.train + sample.val <= affordable);
      if (affordable >= 80) REQUIRE(sample.val >= 3 * affordable / 4);
    }
  }
  config.eval_batches = 7;
  REQUIRE(eval_sample(config).val == 7);
  config.eval_batches = 0;
  REQUIRE(eval_sample(config).val == 0);
}

TEST_CASE("a sample represents the whole text, not its beginning, and one pass gives the same bits as two") {
  Config config = measured_config();
  CapturedRun run(config, uneven_text() + uneven_text() + uneven_text() + uneven_text());
  TextTrainer trainer(run.config, run.data);
  for (int i = 0; i < 40; ++i) trainer.step();
  const EvalBatches batches(run.data.val, config.batch_size, config.block_size);
  const auto loss = [&](std::int64_t max_batches) {
    return mean_loss(trainer.model(), trainer.task(), Part::val, max_batches, {})->mean;
  };
  const auto both = full_and_sampled_loss(trainer.model(), trainer.task(), Part::val, 25, {});
  REQUIRE(both->whole.mean == loss(0));
  REQUIRE(both->whole.targets == batches.targets());
  REQUIRE(both->sample.mean == loss(25));
  REQUIRE(both->sample.targets == 25 * 8);
  // The first 25 batches are all from the easy half. Their loss was less than half of the true one.
  REQUIRE(std::abs(loss(25) - loss(0)) < 0.1 * loss(0));
}

TEST_CASE(
    "the share is reported, and the last evaluation covers the whole text and also reports the loss of the sample") {
  CapturedRun run(measured_config(), uneven_text());
  const std::string said = run.go_on(0, 60);
  INFO(said);
  const auto lines = metrics_lines(run.directory.metrics_file(), "eval");
  REQUIRE(lines.size() == 7);
  // The budget is three batches, one of them of the training text. The 1,000 validation tokens are 125 batches.
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    REQUIRE(lines[i]["val_share"].get<double>() == 2.0 / 125);
    REQUIRE_FALSE(lines[i].contains("sampled_val_loss"));
  }
  REQUIRE(lines.back()["val_share"].get<double>() == 1);
  REQUIRE(lines.back()["sampled_val_share"].get<double>() == 2.0 / 125);
  REQUIRE(contains(said, " on 1.6% of the text"));
  REQUIRE(contains(said, " on the whole text"));
  // In the last line, the loss of the sample decides about best, as the loss of every other line did.
  double least = 1e9;
  for (std::size_t i = 1; i < lines.size(); ++i)
    least = std::min(least, lines[i].value("sampled_val_loss", lines[i]["val_loss"].get<double>()));
  REQUIRE(run.directory.best()->loss == least);
  // The final report gives the loss of the best checkpoint over the whole text.
  TextTrainer trainer(run.config, run.data);
  load_values(ContainerReader(run.directory.checkpoint_file(run.directory.best()->step)), trainer.store());
  REQUIRE(contains(said, fmt::format("best validation loss {:.4f} at step {}", *trainer.validation_loss({}, true),
                                     run.directory.best()->step)));
}

TEST_CASE("the training loss is measured all over the training text") {
  Config config = measured_config();
  config.eval_batches = 0;
  CapturedRun run(config, uneven_text());
  TextTrainer trainer(run.config, run.data);
  for (int i = 0; i < 40; ++i) trainer.step();
  const EvalBatches batches(run.data.train, config.batch_size, config.block_size);
  REQUIRE(batches.count() > 60);
  REQUIRE(trainer.evaluate()->train_loss ==
          mean_loss(trainer.model(), trainer.task(), Part::train, eval_sample(config).train, {})->mean);
  const double whole = mean_loss(trainer.model(), trainer.task(), Part::train, 0, {})->mean;
  REQUIRE(std::abs(trainer.evaluate()->train_loss - whole) < 0.1 * whole);
}

TEST_CASE("after a change of the share, best is measured again before anything is compared with it") {
  CapturedRun run(measured_config(), uneven_text());
  run.go_on(0, 30);
  const std::int64_t step = run.directory.best()->step;
  run.config.eval_batches = 40;
  const std::string said = run.go_on(30, 30);
  INFO(said);
  REQUIRE(contains(said, fmt::format("measured the best checkpoint (step {}) again", step)));
  TextTrainer trainer(run.config, run.data);
  load_values(ContainerReader(run.directory.checkpoint_file(step)), trainer.store());
  REQUIRE(run.directory.best()->step == step);
  REQUIRE(run.directory.best()->loss == trainer.validation_loss().value());
  // A second change, back to the share of all lines, although the pointer has the loss of the other share.
  run.config.eval_batches = measured_config().eval_batches;
  run.go_on(30, 30);
  TextTrainer again(run.config, run.data);
  load_values(ContainerReader(run.directory.checkpoint_file(step)), again.store());
  REQUIRE(run.directory.best()->loss == again.validation_loss().value());
  run.config.eval_batches = 40;
  // The run continues with its own weights, not with those of best.
  CapturedRun straight(measured_config(), uneven_text());
  straight.go_on(0, 60);
  run.go_on(30, 60);
  REQUIRE(read_bytes(run.directory.checkpoint_file(60)) == read_bytes(straight.directory.checkpoint_file(60)));
}
