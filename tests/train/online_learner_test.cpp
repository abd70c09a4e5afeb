// A model that learns while it reads: every token is predicted before it is learned, and only a copy of the weights
// learns.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/threads.h"
#include "tests/train/small_checkpoint.h"
#include "tests/train/small_data.h"
#include "train/loop/adaptive_loss.h"

using namespace maki;
using namespace maki::tests;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

namespace {

Config config_of(const std::string& model) {
  Config config;
  config.model = model;
  config.n_layer = 2;
  config.n_head = 2;
  config.n_embd = 16;
  config.block_size = 8;
  config.batch_size = 2;
  config.val_fraction = 0.25;
  config.dropout = 0.3;  // which must not act
  config.lr_decay_steps = 10;
  if (model == "transformer-xl") {
    config.memory = 8;
    config.positions = Positions::sinusoidal;
  } else {
    config.ngram_orders = {2, 3};
    config.ngram_dropout = 0.3;
    config.conv_width = 3;
  }
  return config;
}

// A checkpoint after three steps, loaded, with its data.
struct Trained {
  explicit Trained(const std::string& model, const std::string& text = seeded_text(400, "abbcccdd"))
      : Trained(config_of(model), text) {}
  Trained(const Config& its_config, const std::string& text)
      : config(its_config), data(dataset_of(text, config)), loaded(write()) {}

  std::string write() {
    TextTrainer trainer(config, data);
    for (int i = 0; i < 3; ++i) trainer.step();
    Unsynced fs;
    const std::string path = folder / "model.maki";
    CheckpointState state = state_after(3, config, data);
    state.ngram_counts = LanguageModelTask(config, data).data_state().ngram_counts;
    write_checkpoint(fs, path, state, trainer.store(), trainer.optimizer(), trainer.carried());
    return path;
  }

  TemporaryFolder folder;
  Config config;
  Dataset data;
  LoadedModel loaded;
};

// The logarithms of the probabilities of the tokens, 0 for those that begin a piece.
std::vector<float> read(const Trained& trained, const AdaptOptions& options, TokenSpan text) {
  std::vector<float> logs;
  OnlineLearner learner(trained.loaded, options);
  learner.read(text, [&](const Prediction& p) {
    REQUIRE(p.begins == p.log_probabilities.empty());
    logs.push_back(p.begins ? 0 : p.log_probabilities[static_cast<std::size_t>(p.token)]);
  });
  return logs;
}

double mean(const std::vector<float>& logs) {
  double sum = 0;
  for (const float log : logs) sum -= static_cast<double>(log);
  return sum / static_cast<double>(logs.size() - 1);
}

const char* const kModels[] = {"gpt", "linear", "transformer-xl"};

}  // namespace

TEST_CASE(
    "without learning, whole windows give the ordinary loss, also with a prior that knows the tokens before them") {
  for (const char* const model : kModels) {
    for (const std::int64_t prior : {0, 4}) {
      INFO(model << " with a prior of " << prior);
      Config config = config_of(model);
      config.ngram_prior = prior;
      const Trained trained(config, seeded_text(388, "abbcccdd"));  // 96 targets: 12 windows
      const auto logs = read(trained, {.learning_rate = 0, .window = 8}, trained.data.val);
      REQUIRE(logs.size() == trained.data.val.size());
      if (config.model == "transformer-xl") continue;  // its evaluation reads several stretches at once
      const LanguageModelTask task(trained.config, trained.data);
      REQUIRE_THAT(mean(logs), WithinRel(mean_loss(*trained.loaded.model, task, Part::val, 0, {})->mean, 1e-6));
    }
  }
}

TEST_CASE("a carried state has read everything before a window, whatever the windows are") {
  for (const std::int64_t prior : {0, 4}) {
    INFO("with a prior of " << prior);
    Config config = config_of("transformer-xl");
    config.ngram_prior = prior;
    const Trained trained(config, seeded_text(400, "abbcccdd"));
    // Of 9 tokens, whose first 8 all fit the memory.
    const auto ids = trained.data.val.view().ids(0, 9);
    const auto whole = read(trained, {.learning_rate = 0, .window = 8}, ids);
    const auto halves = read(trained, {.learning_rate = 0, .window = 4}, ids);
    for (std::size_t i = 0; i < ids.size(); ++i) REQUIRE_THAT(halves[i], WithinAbs(whole[i], 1e-5));
  }
}

TEST_CASE("shorter windows have as much context as the model has") {
  const Trained trained("gpt");
  const auto ids = trained.data.val.view().ids(0, 30);
  const auto logs = read(trained, {.learning_rate = 0, .window = 1}, ids);
  for (std::size_t i = 8; i < ids.size(); ++i) {  // each token alone, after the 8 before it
    const std::vector<std::int32_t> last(ids.begin() + static_cast<std::ptrdiff_t>(i - 8),
                                         ids.begin() + static_cast<std::ptrdiff_t>(i + 1));
    REQUIRE(logs[i] == read(trained, {.learning_rate = 0, .window = 8}, last).back());
  }
}

TEST_CASE("no prediction depends on the tokens after it, and learning changes those of later windows") {
  for (const char* const model : kModels) {
    INFO(model);
    const Trained trained(model);
    auto ids = trained.data.val.view().ids(0, 41);
    const AdaptOptions options{.learning_rate = 0.01, .window = 4};
    const auto before = read(trained, options, ids);
    ids.back() = (ids.back() + 1) % 4;
    ids[38] = (ids[38] + 1) % 4;
    const auto changed = read(trained, options, ids);
    REQUIRE(std::equal(before.begin(), before.begin() + 38, changed.begin()));
    REQUIRE(before[38] != changed[38]);
    const auto still = read(trained, {.learning_rate = 0, .window = 4}, trained.data.val.view().ids(0, 41));
    REQUIRE(std::equal(before.begin(), before.begin() + 5, still.begin()));  // the first window
    for (std::size_t i = 5; i < 38; ++i) REQUIRE(before[i] != still[i]);
  }
}

TEST_CASE("tables learn at a rate of their own while they read, and gradients are clipped, as in training") {
  const auto ids = [](const Trained& trained) { return trained.data.val.view().ids(0, 41); };
  const AdaptOptions options{.learning_rate = 0.01, .window = 4};
  Trained tables("gpt");
  const auto usual = read(tables, options, ids(tables));
  tables.loaded.state.config.ngram_lr_factor *= 2;
  const auto faster = read(tables, options, ids(tables));
  REQUIRE(std::equal(usual.begin(), usual.begin() + 5, faster.begin()));  // the first window
  REQUIRE(usual != faster);
  Trained clipped("transformer-xl");
  clipped.loaded.state.config.grad_clip = 1e-15;  // Adam divides by 1e-8 at least
  const auto hardly = read(clipped, options, ids(clipped)),
             still = read(clipped, {.learning_rate = 0, .window = 4}, ids(clipped));
  for (std::size_t i = 0; i < 41; ++i) REQUIRE_THAT(hardly[i], WithinAbs(still[i], 1e-5));
  clipped.loaded.state.config.grad_clip = 1;
  const auto learned = read(clipped, options, ids(clipped));
  float most = 0;
  for (std::size_t i = 0; i < 41; ++i) most = std::max(most, std::abs(learned[i] - still[i]));
  REQUIRE(most > 0.01F);
}

TEST_CASE("what is read often is learned, in a copy of the weights") {
  for (const char* const model : kModels) {
    INFO(model);
    const Trained trained(model);
    const auto values = trained.loaded.store.values().values<float>();
    const std::vector<float> before(values.begin(), values.end());
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 600; ++i) ids.push_back(i % 4);
    const auto logs = read(trained, {.learning_rate = 0.003, .decay = 0.001, .window = 4}, ids);
    const auto late = std::vector<float>(logs.end() - 100, logs.end());
    REQUIRE(mean(late) < 0.5);
    REQUIRE(mean(read(trained, {.learning_rate = 0, .window = 4}, ids)) > 1);
    REQUIRE(std::equal(before.begin(), before.end(), values.begin()));
  }
}

TEST_CASE("weights return to the trained ones") {
  const Trained trained("gpt");
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 400; ++i) ids.push_back(i % 4);
  const auto late = [&](double decay) {
    const auto logs = read(trained, {.learning_rate = 0.003, .decay = decay, .window = 4}, ids);
    return mean(std::vector<float>(logs.end() - 100, logs.end()));
  };
  REQUIRE(late(0.2) > late(0) + 0.01);
}

TEST_CASE("pieces are read as separate texts, of which each begins without context") {
  for (const char* const model : kModels) {
    INFO(model);
    const Trained trained(model);
    const auto ids = trained.data.val.view().ids(0, 30);
    Tokens pieces(4);
    pieces.append(std::span(ids).first(13));
    pieces.begin_piece();
    pieces.append(std::span(ids).subspan(13));
    std::vector<std::int64_t> begin;
    OnlineLearner learner(trained.loaded, {.learning_rate = 0, .window = 4});
    std::vector<float> logs;
    learner.read(pieces, [&](const Prediction& p) {
      if (p.begins) begin.push_back(std::ssize(logs));
      logs.push_back(p.begins ? 0 : p.log_probabilities[static_cast<std::size_t>(p.token)]);
    });
    REQUIRE(begin == std::vector<std::int64_t>{0, 13});
    REQUIRE(learner.windows() == 3 + 4);
    const auto second = read(trained, {.learning_rate = 0, .window = 4}, std::vector(ids.begin() + 13, ids.end()));
    REQUIRE(std::equal(second.begin(), second.end(), logs.begin() + 13));
  }
}

TEST_CASE("once it is told to stop, nothing more is read, not even the first token of another piece") {
  const Trained trained("gpt");
  const auto ids = trained.data.val.view().ids(0, 30);
  Tokens pieces(4);
  for (int piece = 0; piece < 3; ++piece) {
    pieces.begin_piece();
    pieces.append(std::span(ids).subspan(static_cast<std::size_t>(10 * piece), 10));
  }
  OnlineLearner learner(trained.loaded, {.learning_rate = 0, .window = 4});
  std::vector<std::int32_t> got;
  int asked = 0;
  const auto read_until = [&](int stop_at) {
    got.clear();
    asked = 0;
    learner.read(
        pieces, [&](const Prediction& p) { got.push_back(p.token); }, [&] { return ++asked == stop_at; });
  };
  read_until(3);
  REQUIRE(got == std::vector(ids.begin(), ids.begin() + 9));
  REQUIRE(asked == 3);
  read_until(4);  // the first window of the second piece
  REQUIRE(got == std::vector(ids.begin(), ids.begin() + 11));
  REQUIRE(asked == 4);
  read_until(0);
  REQUIRE(got == ids);
}

TEST_CASE("reading has the same bits at any number of threads, and stops when it is told to") {
  const Trained trained("gpt");
  const AdaptiveOptions options{.network = {.learning_rate = 0.003, .window = 3}};
  std::vector<AdaptiveLoss> losses;
  for (const int threads : {1, 3}) {
    const ThreadsScope set(threads);
    losses.push_back(adaptive_loss(trained.loaded, trained.data, options).value());
  }
  REQUIRE(losses[0].network == losses[1].network);
  REQUIRE(losses[0].mixed == losses[1].mixed);
  REQUIRE(losses[0].targets == static_cast<std::int64_t>(trained.data.val.size()) - 1);
  REQUIRE_FALSE(adaptive_loss(trained.loaded, trained.data, options, [] { return true; }));
}

TEST_CASE("the network alone is measured in the same way, and the counts know the training text") {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "abcdefgh";
  const Trained trained("gpt", text);
  const AdaptiveLoss with = adaptive_loss(trained.loaded, trained.data, {}).value();
  const AdaptiveLoss without = adaptive_loss(trained.loaded, trained.data, {.network = {}, .counts = false}).value();
  REQUIRE(without.network == with.network);
  REQUIRE_FALSE(without.counts);
  REQUIRE_FALSE(without.mixed);
  REQUIRE(*with.counts < 0.05);
  REQUIRE(*with.mixed < with.network);
  Dataset unknown = trained.data;
  unknown.train = Tokens(8);
  REQUIRE(*adaptive_loss(trained.loaded, unknown, {}).value().counts > *with.counts + 0.05);
}

TEST_CASE("what adapting reaches is reported in nats per token and per character") {
  AdaptiveLoss loss{.network = 1, .counts = 2, .mixed = 0.5};
  loss.targets = 30;
  loss.windows = 8;
  loss.window = 4;
  const auto texts = [&](bool own) {
    std::vector<std::string> list;
    for (const ReportLine& line : measure_adapting(loss, {}, own, 0.25)) {
      if (!line.text.empty()) list.push_back(line.label + ": " + line.text);
    }
    return list;
  };
  REQUIRE(texts(true) == std::vector<std::string>{
                             "adapting: 1.0000 nats per token, 0.2500 per character: the network, which learned from "
                             "each window of 4 tokens after predicting it",
                             "counts: 2.0000 nats per token, 0.5000 per character: counts of the training text and of "
                             "what was read before",
                             "mixed: 0.5000 nats per token, 0.1250 per character: the network mixed with the counts"});
  REQUIRE(texts(false)[1] == "counts: 2.0000 nats per token, 0.5000 per character: counts of what was read before");
  loss.counts.reset();
  loss.mixed.reset();
  REQUIRE(texts(true).size() == 1);
}

TEST_CASE("a rate at which the model diverges is named") {
  for (const char* const model : kModels) {
    INFO(model);
    const Trained trained(model);
    const std::string said = error_message<DivergedError>(
        [&] { read(trained, {.learning_rate = 1e30, .window = 4}, trained.data.val.view().ids(0, 41)); });
    REQUIRE(contains(said, trained.loaded.path));
    REQUIRE(contains(said, "windows; lower `adapt_lr`"));
  }
}

TEST_CASE("options of adaptation that are out of range are rejected") {
  const Trained trained("gpt");
  const auto refused = [&](const AdaptOptions& options, const std::string& words) {
    REQUIRE_THROWS_WITH(OnlineLearner(trained.loaded, options), ContainsSubstring(words));
  };
  refused({.learning_rate = -1}, "the learning rate must be finite and not negative; got -1");
  refused({.decay = 1}, "the decay must be in [0, 0.999]; got 1");
  refused({.window = 9}, "a window has at most 8 tokens");
  REQUIRE(OnlineLearner(trained.loaded, {}).window() == 4);
}
