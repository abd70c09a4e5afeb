// Training and evaluation of documents that are respected: losses against those of every document alone, filling that
// changes nothing, and what is refused.
#include <cmath>
#include <set>

#include "tests/catch.h"
#include "tests/tensors.h"
#include "tests/train/small_data.h"
#include "train/loop/evaluate.h"
#include "train/loop/language_model_task.h"
#include "train/loop/tasks.h"
#include "train/loop/trainer.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr std::int32_t kLetters = 7;  // 0 ends a document

Config config_for_task(const std::string& model) {
  Config c;
  apply_preset(c, "quickstart");
  c.model = model;
  c.n_layer = c.n_head = c.grad_accum = 2;
  c.n_embd = c.block_size = 8;
  c.batch_size = 3;
  c.lr_decay_steps = 10;
  c.learning_rate = 0.01;
  c.respect_documents = true;
  fill_open_fields(c);
  return c;
}

// Every value of the tokenizer ends no document, so those of a text are its pieces.
Dataset documents(const std::vector<std::int64_t>& lengths) {
  Dataset data;
  data.tokenizer = make_tokenizer("char", "abcdefg");
  data.train = Tokens(kLetters);
  std::int32_t next = 0;
  for (const std::int64_t length : lengths) {
    data.train.begin_piece();
    for (std::int64_t i = 0; i < length; ++i, next = (next * 5 + 3) % 37)
      data.train.append(std::vector<std::int32_t>{next % kLetters});
  }
  data.val = data.train;
  data.documents = std::ssize(lengths);
  return data;
}

const std::vector<std::int64_t> kLengths = {5, 20, 1, 9, 2, 30, 17};

// Kinds of contexts that could reach beyond the beginning of a sequence.
std::vector<Config> kinds() {
  std::vector<Config> list = {config_for_task("gpt"), config_for_task("linear"), config_for_task("gpt"),
                              config_for_task("gpt")};
  list[2].ngram_orders = {2, 3};
  list[2].conv_width = 3;
  list[2].positions = Positions::rotary;
  list[3].ngram_prior = 3;
  return list;
}

// In float64, without what would magnify or hide how the sums of micro-batches are rounded.
Config config_of_micro_batches(std::int64_t count, std::int64_t rows) {
  Config c = config_for_task("gpt");
  c.dtype = DType::float64;
  c.dropout = 0;
  c.optimizer = "sgd";
  c.learning_rate = c.min_lr = 0.5;
  c.warmup_steps = 0;
  c.grad_accum = count;
  c.batch_size = rows;
  return c;
}

// The steps of one arrangement into micro-batches.
struct StepsOfMicroBatches {
  StepsOfMicroBatches(const Config& config, const Dataset& data) {
    const LanguageModelTask task(config, data);
    Trainer trainer(config, task);
    initial = copy_of<double>(trainer.store().values());
    for (std::int64_t step = 0; step < 3; ++step) {
      std::set<std::int64_t>& counts = targets.emplace_back();
      Batch batch;
      for (std::int64_t micro = 0; micro < config.grad_accum; ++micro) {
        task.fill(step, micro, batch);
        counts.insert(batch.target_count);
      }
      losses.push_back(trainer.step().value().loss);
    }
    values = copy_of<double>(trainer.store().values());
  }
  Tensor initial, values;
  std::vector<double> losses;
  std::vector<std::set<std::int64_t>> targets;  // the numbers of targets that micro-batches of a step have
};

struct TrainedOnDocuments {
  TrainedOnDocuments(const Config& config, const Dataset& data) : task(config, data), trainer(config, task) {
    for (int i = 0; i < 3; ++i) trainer.step();
  }
  LanguageModelTask task;
  Trainer trainer;
};

}  // namespace

TEST_CASE("the loss of documents is that of every sequence alone", "[respect_documents]") {
  const Dataset data = documents(kLengths);
  for (const Config& config : kinds()) {
    const TrainedOnDocuments run(config, data);
    const MeanLoss loss = mean_loss(run.trainer.model(), run.task, Part::val, 0, {}).value();
    REQUIRE(loss.targets == 84 - 7);
    double sum = 0;
    std::int64_t begin = 0;
    for (const std::int64_t length : kLengths) {
      for (std::int64_t at = begin; at < begin + length - 1; at += config.block_size) {
        const std::int64_t targets = std::min(config.block_size, begin + length - 1 - at);
        Batch alone{.ids = empty({1, targets}, DType::int32), .targets = empty({1, targets}, DType::int32)};
        TokenSpan(data.val).copy(at, alone.ids.values<std::int32_t>());
        TokenSpan(data.val).copy(at + 1, alone.targets.values<std::int32_t>());
        // Counts know what is before a sequence in its document.
        if (config.ngram_prior > 0) {
          const NgramTrie counts = load_ngram_trie(run.task.data_state().ngram_counts, data.tokenizer->vocab_size());
          alone.prior = prior_of_windows(counts, data.val, std::vector<std::int64_t>{at}, targets);
        }
        sum += run.trainer.model().loss(alone, {.ignored = kIgnoredTarget, .sum = true}).item();
      }
      begin += length;
    }
    INFO(config.model << " " << config.ngram_orders.size() << " " << config.ngram_prior);
    REQUIRE(std::abs(sum / (84 - 7) - loss.mean) < 1e-5);
  }
}

TEST_CASE("what fills a sequence changes neither its loss nor any gradient", "[respect_documents]") {
  const Dataset data = documents(kLengths);
  for (const Config& config : kinds()) {
    TrainedOnDocuments run(config, data);
    Batch batch;
    run.task.fill(3, 0, batch);
    std::vector<std::vector<float>> gradients;
    std::vector<double> losses;
    for (const int id : {0, 5}) {
      std::int64_t filled = 0;
      for (std::int64_t i = 0; i < batch.ids.numel(); ++i) {
        if (batch.targets.values<std::int32_t>()[static_cast<std::size_t>(i)] != kIgnoredTarget) continue;
        batch.ids.values<std::int32_t>()[static_cast<std::size_t>(i)] = id;
        ++filled;
      }
      REQUIRE(filled > 0);
      REQUIRE(filled + batch.target_count == batch.ids.numel());
      Tape tape;
      run.trainer.store().clear_gradients();
      const Tensor loss = [&] {
        const Recording on(tape);
        return run.trainer.model().loss(batch, {.ignored = kIgnoredTarget, .sum = true});
      }();
      tape.backward(loss, 1);
      losses.push_back(loss.item());
      const auto values = run.trainer.store().gradients().values<float>();
      gradients.emplace_back(values.begin(), values.end());
    }
    REQUIRE(losses[0] == losses[1]);
    REQUIRE(gradients[0] == gradients[1]);
  }
}

TEST_CASE("counts of documents that are respected do not continue beyond an end of text", "[respect_documents]") {
  Config config = config_for_task("gpt");
  config.ngram_prior = 3;
  Dataset data;
  data.tokenizer = make_tokenizer("bpe", "abcabcabdabd", {.vocab_size = 260});
  data.train = encode_pieces(*data.tokenizer, {"abcabd", "bcd", "abd", "cab"}, PieceKind::document);
  data.val = data.train;
  const std::int32_t end = data.tokenizer->end_of_text().value();
  NgramModel expected(data.tokenizer->vocab_size(), 3, {}, end), crossing(data.tokenizer->vocab_size(), 3);
  expected.count(data.train);
  crossing.count(data.train);
  REQUIRE(expected.ngrams() < crossing.ngrams());
  const LanguageModelTask task(config, data);
  REQUIRE(task.data_state().ngram_counts == NgramTrie(expected).save());
  NgramModel longer(data.tokenizer->vocab_size(), kMaxCountedNgram, {}, end);
  longer.count(data.train);
  REQUIRE(task.counting({}).value().val_loss == longer.evaluate(data.val).loss);
  config.respect_documents = false;
  config.block_size = 4;
  REQUIRE(LanguageModelTask(config, data).data_state().ngram_counts == NgramTrie(crossing).save());
}

TEST_CASE("a step is divided by its real targets, which are also its tokens", "[respect_documents]") {
  const Dataset data = documents(kLengths);
  const Config config = config_for_task("gpt");
  const LanguageModelTask task(config, data);
  // 77 targets in 1 + 3 + 0 + 1 + 1 + 4 + 2 sequences of up to 8 tokens.
  REQUIRE(task.epochs(2) == 1);
  REQUIRE(task.tokens_before(2) == 77);
  REQUIRE(task.tokens_in_step(0) + task.tokens_in_step(1) == 77);
  for (std::int64_t step = 0; step < 5; ++step) {
    Batch batch;
    std::int64_t targets = 0;
    for (std::int64_t micro = 0; micro < 2; ++micro) {
      task.fill(step, micro, batch);
      targets += batch.target_count;
    }
    REQUIRE(task.targets(step) == targets);
    REQUIRE(task.tokens_in_step(step) == targets);
  }
  REQUIRE_THAT(task.describe_data(),
               ContainsSubstring("; 7 documents; 12 sequences for training, of which 19.8 % is filling"));
  REQUIRE(task.describe_step() == "6 sequences");
}

TEST_CASE("micro-batches with unequal numbers of targets make the step of one batch", "[respect_documents]") {
  // 24 sequences with 155 targets, which neither 2 nor 3 divides: so equal micro-batches are impossible.
  const Dataset data = documents({5, 20, 1, 9, 2, 30, 17, 60, 4, 12, 6});
  const StepsOfMicroBatches whole(config_of_micro_batches(1, 24), data);
  REQUIRE(whole.targets == std::vector<std::set<std::int64_t>>(3, {155}));
  REQUIRE(largest_difference(whole.values, whole.initial) > 1e-3);
  for (const auto& [count, rows] : {std::pair{2, 12}, {3, 8}, {8, 3}}) {
    INFO(count << " micro-batches of " << rows);
    const StepsOfMicroBatches divided(config_of_micro_batches(count, rows), data);
    REQUIRE(same_bits(divided.initial, whole.initial));
    for (std::size_t step = 0; step < 3; ++step) {
      REQUIRE(divided.targets[step].size() > 1);
      REQUIRE(std::abs(divided.losses[step] - whole.losses[step]) < 1e-12);
    }
    REQUIRE(largest_difference(divided.values, whole.values) < 1e-12);
  }
}

TEST_CASE("documents are respected where there are any, by models that carry nothing", "[respect_documents]") {
  Corpus corpus;
  corpus.sources = {"a.txt"};
  corpus.text = seeded_text(400, "abcdefg");
  corpus.characters = 400;
  const Config config = config_for_task("gpt");
  validate(config);
  REQUIRE_THROWS_WITH(make_task(config, corpus),
                      "respect_documents: a.txt does not say where its documents end; say what a document is, with "
                      "`documents`, `document_separator` or `json_field`, or omit `respect_documents`");
  corpus.documents = {0, 100, 103, 300};
  Config large = config;
  large.block_size = 1000;  // a document may be shorter
  REQUIRE(make_task(large, corpus)->targets(0) > 0);
  Config xl = config_for_task("transformer-xl");
  REQUIRE_THROWS_WITH(validate(xl),
                      ContainsSubstring("respect_documents: has an effect only if model is not transformer-xl"));
  Config encoder = config_for_task("encoder");
  REQUIRE_THROWS_WITH(validate(encoder),
                      ContainsSubstring("respect_documents: has an effect only if task is next_token; it is masked"));
  // Random data have no documents, and need none.
  REQUIRE(make_random_task(config, VocabSizes(7), 1)->tokens_in_step(0) == 48);
  // Another text is evaluated as one document per file.
  corpus.documents.clear();
  corpus.joins = {100};
  PairTokenizers tokenizers;
  tokenizers.target = make_tokenizer("char", "abcdefg");
  const auto task = make_eval_task(config, corpus, tokenizers, {});
  REQUIRE(task->eval_batches(Part::val) == (13 + 38 + 2) / 3);  // 99 and 299 targets
}
