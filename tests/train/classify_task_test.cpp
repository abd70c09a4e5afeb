// The batches and measurements of classifiers, and what their checkpoints store.
#include "train/loop/classify_task.h"

#include <fmt/format.h>

#include "data/io/error.h"
#include "nn/models/encoder.h"
#include "tests/catch.h"
#include "tests/nn/small_gpt.h"
#include "tests/tensors.h"
#include "tests/train/captured_stderr.h"
#include "tests/train/small_checkpoint.h"
#include "train/app/initial_weights.h"
#include "train/app/report.h"
#include "train/loop/evaluate.h"
#include "train/loop/random_dataset.h"
#include "train/loop/trainer.h"
#include "train/run/loaded_model.h"
#include "train/run/verified_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

Config small_classifier() {
  Config c;
  c.model = "encoder";
  c.task = "classify";
  c.n_layer = 1;
  c.n_head = 2;
  c.n_embd = 8;
  c.block_size = 12;
  c.batch_size = 4;
  c.val_fraction = 0.25;
  c.learning_rate = 0.01;
  c.min_lr = 0.001;
  c.warmup_steps = 2;
  c.lr_decay_steps = 200;
  return c;
}

// 40 lines of 1 to 10 letters, whose label says whether they contain an a.
std::shared_ptr<const LabelledDataset> small_data(const Config& config, const std::string& yes = "yes",
                                                  const std::string& more = "") {
  Corpus corpus;
  corpus.sources = {"letters.tsv"};
  const RandomStream stream(3, RandomPurpose::test);
  for (std::uint64_t i = 0; i < 40; ++i) {
    std::string line;
    for (std::uint64_t k = 0; k <= stream.below(20 * i, 10); ++k) line += "bcd"[stream.below(20 * i + k + 1, 3)];
    if (i % 2 == 0) line[line.size() / 2] = 'a';
    corpus.text += line + "\t" + (i % 2 == 0 ? yes : "no") + "\n";
  }
  corpus.text += more;
  corpus.characters = std::ssize(corpus.text);
  corpus.hash = "0123456789abcdef0123456789abcdef";
  return std::make_shared<const LabelledDataset>(
      make_labelled_dataset(corpus, {.val_fraction = config.val_fraction, .max_tokens = config.block_size}));
}

nlohmann::ordered_json measured(const ClassifyTask& task, const Model& model) {
  const MeanLoss loss = mean_loss(model, task, Part::val, 0, {}).value();
  const std::int64_t batches = task.eval_batches(Part::val);
  return to_json(task.measure(model, {loss, batches, batches}, {}, {}));
}

}  // namespace

TEST_CASE("what is said of the text names labels of which there is nearly one for each text") {
  const Config config = small_classifier();
  const auto said = [&](int texts, int labels) {
    Corpus corpus;
    for (int i = 0; i < texts; ++i) corpus.text += fmt::format("text {}\tlabel {}\n", i, i % labels);
    corpus.sources = {"corpus"};
    return ClassifyTask(config, std::make_shared<const LabelledDataset>(make_labelled_dataset(
                                    corpus, {.val_fraction = 0.1, .max_tokens = config.block_size})))
        .describe_data();
  };
  REQUIRE_THAT(said(20, 4), ContainsSubstring("; 4 labels; "));
  REQUIRE_THAT(said(20, 14), ContainsSubstring("; 14 labels; "));
  REQUIRE_THAT(said(20, 15),
               ContainsSubstring("; 15 labels for 20 texts, so what follows the tabs may be no labels; "));
  REQUIRE_THAT(said(9, 9), ContainsSubstring("; 9 labels; "));
}

TEST_CASE("a batch has the texts, padded and masked, and a class for each") {
  const Config config = small_classifier();
  const auto data = small_data(config);
  const ClassifyTask task(config, data);
  REQUIRE(task.vocab_sizes().classes == 2);
  REQUIRE(task.describe_data() == "30 texts for training, 10 for validation; 2 labels; vocabulary of " +
                                      std::to_string(task.vocab_sizes().target));
  std::int64_t texts = 0, padded = 0;
  for (std::int64_t i = 0; i < task.eval_batches(Part::val); ++i) {
    Batch batch;
    task.fill_eval(Part::val, i, batch);
    const std::int64_t rows = batch.ids.shape()[0], length = batch.ids.shape()[1];
    REQUIRE(batch.targets.shape() == Shape{rows});
    REQUIRE(batch.target_count == rows);
    for (std::int64_t r = 0; r < rows; ++r) {
      std::vector<std::int32_t> ids;
      for (std::int64_t t = 0; t < length; ++t) {
        const bool visible = !batch.source_mask || batch.source_mask.data<std::int32_t>()[r * length + t] != 0;
        if (visible) ids.push_back(batch.ids.data<std::int32_t>()[r * length + t]);
        padded += visible ? 0 : 1;
      }
      const bool yes = data->tokenizer->decode_line(ids).find('a') != std::string::npos;
      REQUIRE(data->labels[static_cast<std::size_t>(batch.targets.data<std::int32_t>()[r])] == (yes ? "yes" : "no"));
    }
    texts += rows;
  }
  REQUIRE(texts == 10);
  REQUIRE(padded > 0);
}

TEST_CASE("the targets of a step are its texts, and its tokens those that can be seen") {
  Config config = small_classifier();
  config.grad_accum = 3;
  config.batch_size = 7;
  const ClassifyTask task(config, small_data(config));
  REQUIRE(task.describe_step() == "21 texts");
  std::int64_t before = 0;
  for (std::int64_t step = 0; step < 4; ++step) {
    std::int64_t targets = 0, tokens = 0;
    for (std::int64_t micro = 0; micro < 3; ++micro) {
      Batch batch;
      task.fill(step, micro, batch);
      targets += batch.target_count;
      tokens += batch.source_mask ? std::ranges::count(batch.source_mask.values<std::int32_t>(), 1) : batch.ids.numel();
    }
    REQUIRE(targets == task.targets(step));
    REQUIRE(tokens == task.tokens_in_step(step));
    REQUIRE(before == task.tokens_before(step));
    before += tokens;
  }
  REQUIRE(task.epochs(10) == 6);  // 30 texts are 5 batches
}

TEST_CASE("a classifier learns, and its confusion matrix counts every text once") {
  const Config config = small_classifier();
  const ClassifyTask task(config, small_data(config));
  Trainer trainer(config, task);
  // A row is a label of the data, also before training, when almost all answers are the same.
  std::array<std::int64_t, 2> texts{};
  const std::shared_ptr<const LabelledDataset> data = small_data(config);
  for (std::int64_t i = 0; i < data->val.size(); ++i) ++texts[static_cast<std::size_t>(data->val.target(i)[0])];
  REQUIRE(texts[0] != texts[1]);
  const auto untrained = measured(task, trainer.model()).at("confusion");
  for (std::size_t i = 0; i < 2; ++i)
    REQUIRE(untrained[i][0].get<std::int64_t>() + untrained[i][1].get<std::int64_t>() == texts[i]);
  for (int i = 0; i < 200; ++i) trainer.step();
  const auto facts = measured(task, trainer.model());
  REQUIRE(facts.at("accuracy").get<double>() >= 0.9);
  REQUIRE(facts.at("labels") == std::vector<std::string>{"no", "yes"});
  std::int64_t all = 0, right = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    std::int64_t row = 0;
    for (std::size_t k = 0; k < 2; ++k) row += facts.at("confusion")[i][k].get<std::int64_t>();
    REQUIRE(row == texts[i]);
    right += facts.at("confusion")[i][i].get<std::int64_t>();
    all += row;
  }
  REQUIRE(all == 10);
  REQUIRE(facts.at("correct") == right);
}

TEST_CASE("a matrix of more labels than a terminal has room for is in the JSON report alone") {
  const Config config = small_classifier();
  for (const std::int64_t labels : {10, 11}) {
    LabelledDataset data = random_labelled(5, labels, 20, config.block_size, 1);
    data.val = data.train;
    const ClassifyTask task(config, std::make_shared<const LabelledDataset>(std::move(data)));
    Trainer trainer(config, task);
    const auto list = task.measure(trainer.model(), {{2, 20}, 5, 5}, {}, {});
    const auto line = std::ranges::find(list, "confusion", &ReportLine::label);
    REQUIRE(line != list.end());
    REQUIRE(line->text == (labels == 10 ? "one row for each label, one column for each answer of the model"
                                        : "11 labels, whose matrix the JSON report has"));
    REQUIRE(list.end() - line == (labels == 10 ? 1 + 11 : 1));
    REQUIRE(std::ssize(to_json(list).at("confusion")) == labels);
  }
}

TEST_CASE("the accuracy of an evaluation is that of the texts that it covers") {
  Config config = small_classifier();
  config.eval_batches = 1;  // of three
  const ClassifyTask task(config, small_data(config));
  REQUIRE(task.eval_batches(Part::val) == 3);
  Trainer trainer(config, task);
  randomize(trainer.store(), 5);
  const auto share = [&](std::int64_t begin, std::int64_t end) {
    Answers sum;
    for (std::int64_t i = begin; i < end; ++i) {
      const Answers of_batch = task.answers(trainer.model(), i);
      sum.right += of_batch.right;
      sum.all += of_batch.all;
    }
    return static_cast<double>(sum.right) / static_cast<double>(sum.all);
  };
  REQUIRE(share(0, 3) != share(1, 2));
  REQUIRE(share(0, 3) == measured(task, trainer.model()).at("accuracy").get<double>());
  REQUIRE(trainer.evaluate({}, /*whole=*/true)->val_accuracy == share(0, 3));
  REQUIRE(trainer.evaluate()->val_accuracy == share(1, 2));  // the middle one
  REQUIRE_FALSE(accuracy(trainer.model(), task, 0, [] { return true; }));
  // Whenever a stop is requested, also among the answers, there is no evaluation.
  for (const bool whole : {false, true}) {
    int asked = 0;
    REQUIRE(trainer.evaluate([&] { return ++asked < 0; }, whole)->val_accuracy);
    for (int last = 1; last <= asked; ++last) {
      int now = 0;
      INFO("stopped at " << last << " of " << asked);
      REQUIRE_FALSE(trainer.evaluate([&] { return ++now >= last; }, whole));
    }
  }
}

TEST_CASE("a checkpoint stores the labels, and damaged ones are detected") {
  const TemporaryFolder folder;
  const Config config = small_classifier();
  const std::shared_ptr<const LabelledDataset> data = small_data(config);
  const ClassifyTask task(config, data);
  Trainer trainer(config, task);
  for (int i = 0; i < 2; ++i) trainer.step();
  Unsynced fs;
  CheckpointState state = task.data_state();
  const auto tokens_of = [](const TokenPairs& texts) {
    std::int64_t tokens = 0;
    for (std::int64_t i = 0; i < texts.size(); ++i) tokens += texts.source_length(i);
    return tokens;
  };
  REQUIRE(state.train_tokens == tokens_of(data->train));
  REQUIRE(state.val_tokens == tokens_of(data->val));
  state.step = 2;
  state.config = config;
  write_checkpoint(fs, folder / "good.maki", state, trainer.store(), trainer.optimizer());
  const LoadedModel loaded(folder / "good.maki");
  REQUIRE(VerifiedCheckpoint(folder / "good.maki").state().labels == "no\nyes\n");
  REQUIRE(measured(task, *loaded.model) == measured(task, trainer.model()));
  for (const char* const labels : {"yes\nno\n", "yes\n", "maybe\nno\nyes\n", "no\nyes"}) {
    INFO(labels);
    state.labels = labels;
    write_checkpoint(fs, folder / "bad.maki", state, trainer.store(), trainer.optimizer());
    REQUIRE_THROWS_AS(VerifiedCheckpoint(folder / "bad.maki"), CorruptFile);
  }
  state.labels = "";
  write_checkpoint(fs, folder / "bad.maki", state, trainer.store(), trainer.optimizer());
  REQUIRE_THROWS_AS(VerifiedCheckpoint(folder / "bad.maki"), CorruptFile);
}

TEST_CASE("a classifier of other labels takes all from another but its head") {
  const TemporaryFolder folder;
  const Config config = small_classifier();
  const ClassifyTask task(config, small_data(config));
  Trainer base(config, task);
  randomize(base.store(), 5);
  Unsynced fs;
  CheckpointState state = task.data_state();
  state.config = config;
  write_checkpoint(fs, folder / "base.maki", state, base.store(), base.optimizer());
  const InitialWeights weights(folder / "base.maki");
  REQUIRE_FALSE(weights.leaves_some(config, task));
  // As many labels, of which one has another name; and one more.
  for (const auto& [yes, more, labels] :
       {std::tuple{"never", "", "never, no"}, {"yes", "b\tmaybe\n", "maybe, no, yes"}}) {
    INFO(labels);
    const ClassifyTask other(config, small_data(config, yes, more));
    REQUIRE(weights.leaves_some(config, other));
    Trainer fresh(config, other), tuned(config, other);
    const std::string said = written_to_stderr([&] { weights.load(tuned.store(), other); });
    REQUIRE_THAT(said, ContainsSubstring("the labels of this text are " + std::string(labels) + ", and " +
                                         folder.path() + "/base.maki knows no, yes"));
    for (const auto& parameter : tuned.store().parameters()) {
      const std::string& name = parameter->name();
      INFO(name);
      const bool is_new = name == "classifier.weight" || name == "classifier.bias";
      REQUIRE(same_bits(parameter->value(), (is_new ? fresh : base).store().find(name).value()));
    }
  }
  Trainer again(config, task, /*initial_values=*/false);
  REQUIRE(written_to_stderr([&] { weights.load(again.store(), task); }).empty());
  REQUIRE(same_bits(again.store().values(), base.store().values()));
  // A new head that is not trained would stay random.
  Config adapted = config, frozen = config;
  adapted.lora_rank = 2;
  frozen.freeze = {"classifier.*"};
  for (const auto& [with, refusal] :
       {std::pair{adapted,
                  "lora_rank: the labels of this text need a new last layer, which adapters do not train; omit "
                  "--lora-rank"},
        {frozen,
         "freeze: the labels of this text need a new last layer, which must be trained; omit --freeze, or use other "
         "patterns"}}) {
    const ClassifyTask other(with, small_data(with, "never")), equal(with, small_data(with));
    Trainer tuned(with, other), same(with, equal);
    REQUIRE_THROWS_WITH(weights.load(tuned.store(), other), refusal);
    REQUIRE_NOTHROW(weights.load(same.store(), equal));
  }
}
