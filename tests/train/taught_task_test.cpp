// What a run learns from its teachers, against the formula, and the loss of models that learn it.
#include "train/loop/taught_task.h"

#include <cmath>

#include "autograd/gradcheck.h"
#include "autograd/ops.h"
#include "data/mixing/held_out_expectations.h"
#include "tests/train/small_loaded.h"
#include "train/app/own_teachers.h"
#include "train/loop/language_model_task.h"
#include "train/loop/observed_logits.h"
#include "train/loop/score_tokens.h"
#include "train/run/values_by_name.h"
#include "train/run/verified_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

const std::string kTaughtText = seeded_text(400, "abcdef");

// Teachers and a run that they teach, on the text of write_small_model().
struct Taught {
  explicit Taught(const std::vector<SmallModel>& teachers, Config its = small_language_models()[0].config)
      : config(std::move(its)), data(dataset_of(kTaughtText, config)) {
    for (const SmallModel& teacher : teachers)
      config.teacher.push_back(
          write_small_model(folder / (std::to_string(config.teacher.size()) + ".maki"), teacher.config));
    config.teacher_weight = 0.25;
  }
  std::unique_ptr<Task> plain() const { return std::make_unique<LanguageModelTask>(config, data); }
  std::unique_ptr<Task> task() const { return taught(config, plain()); }
  std::string refusal() const {
    return error_message<Error>([&] { task(); });
  }

  TemporaryFolder folder;
  Config config;
  Dataset data;
};

SmallModel named(const std::string& name) {
  for (const SmallModel& small : small_language_models()) {
    if (small.name == name) return small;
  }
  throw std::logic_error(name);
}

// The rows of a batch, each with its last target.
std::vector<std::vector<std::int32_t>> rows_of(const Batch& batch) {
  const std::int64_t length = batch.ids.shape()[1];
  std::vector<std::vector<std::int32_t>> rows;
  for (std::int64_t row = 0; row < batch.ids.shape()[0]; ++row) {
    const std::int32_t* const ids = batch.ids.data<std::int32_t>() + row * length;
    rows.emplace_back(ids, ids + length);
    rows.back().push_back(batch.targets.data<std::int32_t>()[(row + 1) * length - 1]);
  }
  return rows;
}

}  // namespace

TEST_CASE("a batch expects the mixture of its targets and the mean of what the teachers predict") {
  const std::vector<SmallModel> teachers = {named("gpt"), named("rotary"), named("linear, elu")};
  for (const std::size_t count : {std::size_t{1}, std::size_t{3}}) {
    Taught all({teachers.begin(), teachers.begin() + static_cast<std::ptrdiff_t>(count)});
    all.config.label_smoothing = 0.1;
    Batch batch, plain;
    all.task()->fill(3, 0, batch);
    all.plain()->fill(3, 0, plain);
    REQUIRE_FALSE(plain.expected);
    const auto rows = rows_of(plain);
    REQUIRE(rows_of(batch) == rows);
    const std::int64_t length = plain.ids.shape()[1], vocabulary = 6;
    REQUIRE(batch.expected.shape() == Shape{std::ssize(rows), length, vocabulary});
    for (std::size_t row = 0; row < rows.size(); ++row) {
      std::vector<std::vector<double>> mean(static_cast<std::size_t>(length), std::vector<double>(6));
      for (const std::string& path : all.config.teacher) {
        const auto scores = score_tokens(LoadedModel(path), rows[row], vocabulary);
        for (std::size_t i = 0; i < mean.size(); ++i) {
          for (const LogProbability& of : scores[i].top)
            mean[i][static_cast<std::size_t>(of.id)] += std::exp(of.value) / static_cast<double>(count);
        }
      }
      for (std::size_t i = 0; i < mean.size(); ++i) {
        for (std::int32_t id = 0; id < vocabulary; ++id) {
          const double target = (rows[row][i + 1] == id ? 0.9 : 0) + 0.1 / 6;
          const double expected = 0.75 * target + 0.25 * mean[i][static_cast<std::size_t>(id)];
          const auto at = (static_cast<std::int64_t>(row) * length + static_cast<std::int64_t>(i)) * vocabulary + id;
          REQUIRE(batch.expected.at(at) == Approx(expected).margin(1e-6));
        }
      }
    }
  }
}

TEST_CASE("in all but what its batches expect, a taught task is the one that it was made of") {
  Config config = small_language_models()[0].config;
  config.val_fraction = 0.25;
  Taught all({named("gpt")}, config);
  all.data.best_possible_loss = 1.5;
  const std::unique_ptr<Task> task = all.task(), plain = all.plain();
  REQUIRE(task->vocab_sizes().target == plain->vocab_sizes().target);
  REQUIRE(task->targets(2) == plain->targets(2));
  REQUIRE(task->tokens_in_step(2) == plain->tokens_in_step(2));
  REQUIRE(task->tokens_before(2) == plain->tokens_before(2));
  REQUIRE(task->epochs(5) == plain->epochs(5));
  for (const Part part : {Part::train, Part::val}) {
    REQUIRE(task->eval_batches(part) == plain->eval_batches(part));
    Batch batch, same;
    task->fill_eval(part, 1, batch);
    plain->fill_eval(part, 1, same);
    REQUIRE(rows_of(batch) == rows_of(same));
    REQUIRE_FALSE(batch.expected);
  }
  REQUIRE(task->describe_data() == plain->describe_data());
  REQUIRE(task->describe_step() == plain->describe_step());
  REQUIRE(task->best_possible_loss() == 1.5);
  REQUIRE(task->counting({})->val_loss == plain->counting({})->val_loss);
  const LoadedModel model(all.config.teacher[0]);
  REQUIRE(task->sample(*model.model, 1, 2, {}) == plain->sample(*model.model, 1, 2, {}));
}

TEST_CASE("a teacher with a count is given the count of the batch, which is of the other parts of the text") {
  Taught all({named("prior")}, named("prior").config);
  all.config.teacher_weight = 1;
  Batch batch;
  all.task()->fill(0, 0, batch);
  const LoadedModel teacher(all.config.teacher[0]);
  ObservedLogits logits;
  teacher.model->loss({.ids = batch.ids, .targets = batch.targets, .prior = batch.prior}, {});
  const Tensor logs = logits.log_probabilities(0, logits.rows());
  teacher.model->loss({.ids = batch.ids, .targets = batch.targets}, {});
  const Tensor of_the_whole_text = logits.log_probabilities(0, logits.rows());
  std::int64_t others = 0;
  for (std::int64_t i = 0; i < logs.numel(); ++i) {
    REQUIRE(batch.expected.at(i) == Approx(std::exp(logs.at(i))).margin(1e-6));
    others += std::abs(of_the_whole_text.at(i) - logs.at(i)) > 0.01 ? 1 : 0;
  }
  REQUIRE(others > logs.numel() / 10);
}

TEST_CASE("probabilities of one token each give the loss and the gradients of targets, for every model that writes") {
  for (const SmallModel& small : every_small_model()) {
    INFO(small.name);
    Config config = small.config;
    config.dtype = DType::float64;
    config.dropout = 0;
    SmallTrainer trainer(config);
    if (trainer.trainer.model().as_generator() == nullptr) continue;
    Batch batch;
    trainer.task->fill(0, 0, batch);
    const std::int64_t vocabulary = trainer.task->vocab_sizes().target;
    ParameterStore& store = trainer.trainer.store();
    const auto gradients = [&](const Batch& of) {
      Tape tape;
      store.clear_gradients();
      const Recording on(tape, RandomContext{});
      const Tensor loss = trainer.trainer.model().loss(of, {.ignored = kIgnoredTarget, .sum = true});
      tape.backward(loss);
      std::vector<double> values = {loss.item()};
      for (const auto& parameter : store.parameters()) {
        const Tensor gradient = parameter->gradient();
        for (std::int64_t i = 0; i < gradient.numel(); ++i) values.push_back(gradient.at(i));
      }
      return values;
    };
    Batch expected = batch;
    expected.expected = zeros({batch.targets.shape()[0], batch.targets.shape()[1], vocabulary}, DType::float64);
    for (std::int64_t i = 0; i < batch.targets.numel(); ++i) {
      const std::int32_t target = batch.targets.data<std::int32_t>()[i];
      if (target != kIgnoredTarget) expected.expected.data<double>()[i * vocabulary + target] = 1;
    }
    const std::vector<double> hard = gradients(batch), soft = gradients(expected);
    REQUIRE(hard.size() == soft.size());
    for (std::size_t i = 0; i < hard.size(); ++i) REQUIRE(soft[i] == Approx(hard[i]).epsilon(1e-10).margin(1e-12));
    expected.expected = zeros({1, 1, vocabulary}, DType::float64);
    REQUIRE_THROWS_WITH(trainer.trainer.model().loss(expected, {}), ContainsSubstring("the expected probabilities"));
  }
}

TEST_CASE("the gradient of a loss of expected probabilities is that of differences") {
  Config config = small_model_config("gpt");
  config.dtype = DType::float64;
  SmallTrainer small(config);
  randomize(small.trainer.store(), 5);
  Batch batch;
  small.task->fill(0, 0, batch);
  const std::int64_t vocabulary = small.task->vocab_sizes().target;
  batch.expected = softmax(random_tensor({batch.ids.shape()[0], batch.ids.shape()[1], vocabulary}, 2));
  GradcheckOptions options;
  options.step = 2.5e-4;
  options.random = {.seed = 1, .step = 3};
  const auto loss = [&] { return small.trainer.model().loss(batch, {.sum = true}); };
  for (const GradcheckResult& result : gradcheck(small.trainer.store(), loss, options)) {
    INFO(result.name << ": error " << result.error);
    REQUIRE(result.passed(1e-8));
  }
}

TEST_CASE("a teacher that does not fit is refused, with the rule") {
  REQUIRE(Taught({named("gpt")}).refusal().empty());
  REQUIRE_THAT(Taught({named("transformer-xl")}).refusal(), ContainsSubstring("remembers what it has read"));
  REQUIRE_THAT(Taught({named("prior")}).refusal(), ContainsSubstring("has counted n-grams of up to 3 tokens"));
  Taught used({named("gpt")});
  std::unique_ptr<Tokenizer> its = load_tokenizer(used.data.tokenizer->save());
  its->set_use({.ends = {1}});
  used.data.tokenizer = std::move(its);
  REQUIRE(used.refusal().empty());
  Config longer = named("rotary").config;
  longer.block_size = 13;
  REQUIRE_THAT(Taught({named("rotary")}, longer).refusal(), ContainsSubstring("lower `block_size`"));
  Taught other({named("gpt")});
  other.data = dataset_of(seeded_text(400, "abcdefg"), other.config);
  REQUIRE_THAT(other.refusal(), ContainsSubstring("has other tokens than this run"));
  other.config.teacher = {golden_checkpoint("encoder")};
  REQUIRE_THAT(other.refusal(), ContainsSubstring("does not predict each token"));
  other.config.teacher = {other.folder.write("damaged.maki", "damaged")};
  REQUIRE(other.refusal().starts_with("teacher: " + other.config.teacher[0]));
  other.config.teacher = {"@own:20"};
  REQUIRE_THAT(other.refusal(), ContainsSubstring("@own:20 must be trained first"));
}

TEST_CASE("a run names the weight and the values that it learns from, and learns from no others") {
  Taught all({named("gpt"), named("rotary")});
  const std::string recorded = taught_by(all.config);
  REQUIRE(recorded == "0.25 " + hash_of_values(LoadedModel(all.config.teacher[0]).store) + " " +
                          hash_of_values(LoadedModel(all.config.teacher[1]).store));
  all.config.taught_by = recorded;
  REQUIRE(all.refusal().empty());
  std::swap(all.config.teacher[0], all.config.teacher[1]);
  REQUIRE_THAT(all.refusal(), ContainsSubstring("name the same checkpoints"));
  std::swap(all.config.teacher[0], all.config.teacher[1]);
  all.config.teacher_weight = 0.3;
  const std::string weight = "teacher_weight: is fixed for this run at 0.25; got 0.3; omit `teacher_weight`";
  REQUIRE(all.refusal() == weight);
  const auto refused = [&](const std::vector<std::string>& teachers) {
    all.config.teacher = teachers;
    return error_message<Error>([&] { require_same_teaching(all.config); });
  };
  REQUIRE(refused({"a", "@own:3"}) == weight);  // before they are loaded
  REQUIRE(refused({"a"}) == "teacher: this run learns from 2 runs; got 1 run; name what it has learned from");
  REQUIRE(refused({"a", "@counts"}) ==
          "teacher: this run learns from 2 runs; got 1 run and @counts; name what it has learned from");
  REQUIRE(refused({}) == "teacher: this run learns from 2 runs; got none; name what it has learned from");
  REQUIRE(taught_by(all.config).empty());
}

TEST_CASE("counts of the text teach what they expect of the part that they have not read, beside other teachers") {
  for (const bool network : {false, true}) {
    Taught all(network ? std::vector<SmallModel>{named("gpt")} : std::vector<SmallModel>{});
    Batch batch, plain, alone;
    if (network) all.task()->fill(3, 0, alone);
    all.config.teacher.emplace_back("@counts");
    REQUIRE(taught_by(all.config).ends_with(" counts"));
    all.task()->fill(3, 0, batch);
    const LanguageModelTask text(all.config, all.data);
    text.fill(3, 0, plain);
    const HeldOutExpectations expectations(*all.data.tokenizer, all.data.train);
    const std::vector<std::int64_t> starts = text.window_starts(3, 0);
    const std::int64_t length = plain.ids.shape()[1], tokens = std::ssize(all.data.train.ids());
    std::vector<float> counted(6);
    for (std::int64_t i = 0; i < plain.targets.numel(); ++i) {
      const std::int64_t target = (starts[static_cast<std::size_t>(i / length)] + i % length + 1) % tokens;
      REQUIRE(TokenSpan(all.data.train)[static_cast<std::size_t>(target)] == plain.targets.data<std::int32_t>()[i]);
      expectations.probabilities(target, counted);
      for (std::int32_t id = 0; id < 6; ++id) {
        const double own = plain.targets.data<std::int32_t>()[i] == id ? 0.75 : 0;
        const double taught = 0.25 * static_cast<double>(counted[static_cast<std::size_t>(id)]);
        const double expected = network ? (alone.expected.at(i * 6 + id) + own + taught) / 2 : own + taught;
        REQUIRE(batch.expected.at(i * 6 + id) == Approx(expected).margin(1e-6));
      }
    }
  }
}

TEST_CASE("the help of teachers says of which parts of the text counts know the others") {
  REQUIRE(HeldOutExpectations::kParts == 4);
  REQUIRE_THAT(find_field("teacher").help, ContainsSubstring("each quarter of the text from the others"));
}

TEST_CASE("counts teach runs that predict the next token of a text, and are named once") {
  Taught all({});
  all.config.teacher = {"@counts", "@counts"};
  REQUIRE_THAT(error_message<Error>([&] { validate(all.config); }), ContainsSubstring("@counts can be named once"));
  all.config.teacher = {"@count"};
  REQUIRE_THAT(error_message<Error>([&] { validate(all.config); }),
               ContainsSubstring("must be @counts, or @own:STEPS"));
}

TEST_CASE("a run that trains its teachers first has a checkpoint of step 0, which no phase comes before") {
  const TemporaryFolder folder;
  Config config = small_language_models()[0].config;
  const Dataset data = dataset_of(kTaughtText, config);
  TextTrainer trainer(config, data);
  config.phases = {{.start = 4, .end = 9, .learning_rate = 0.01, .min_lr = 0.001, .warmup_steps = 1}};
  Unsynced fs;
  const RunDirectory run(folder / "run", fs);
  run.create();
  save_beginning(config, trainer, run, {});
  std::vector<std::string> notes;
  const VerifiedCheckpoint beginning = newest_intact(run, notes);
  REQUIRE(notes.empty());
  REQUIRE(beginning.state().step == 0);
  REQUIRE(beginning.state().config.phases.empty());
  REQUIRE(beginning.state().config.n_embd == config.n_embd);
}
