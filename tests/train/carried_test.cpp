// What a model carries from one step to the next: training and evaluation against losses written out from the text, and
// checkpoints from which a run continues as if it had not been stopped.
#include <cmath>
#include <cstring>
#include <limits>

#include "data/io/error.h"
#include "tests/threads.h"
#include "tests/train/averaging_model.h"
#include "tests/train/every_small_model.h"
#include "train/loop/evaluate.h"
#include "train/run/memory_section.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr std::int64_t kCapacity = 7;  // more than a window has, so that the memory is full after the second step

Config carried_config() {
  Config c;
  c.block_size = 5;
  c.batch_size = 3;
  c.grad_accum = 2;
  c.dtype = DType::float64;
  c.seed = 4;
  c.label_smoothing = 0;
  c.learning_rate = 0.05;
  c.min_lr = 0;
  c.warmup_steps = 0;
  c.lr_decay_steps = 100;
  c.eval_batches = 0;
  return c;
}

std::vector<std::int32_t> random_text(std::int64_t n, std::uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::test);
  std::vector<std::int32_t> text;
  for (std::int64_t i = 0; i < n; ++i)
    text.push_back(static_cast<std::int32_t>(stream.below(static_cast<std::uint64_t>(i), AveragingTask::kVocabulary)));
  return text;
}

struct Run {
  explicit Run(const Config& with = carried_config(), std::int64_t capacity = kCapacity)
      : config(with), task(config, capacity, random_text(97, 1), random_text(263, 2)), trainer(config, task) {}

  const Tensor& memory(std::int64_t micro) {
    return dynamic_cast<const AveragingState&>(*trainer.carried().of(micro)).memory();
  }
  // The bytes of its checkpoint.
  std::string save(const std::string& path) {
    CheckpointState state = task.data_state();
    state.step = trainer.steps();
    state.config = config;
    Unsynced fs;
    write_checkpoint(fs, path, state, trainer.store(), trainer.optimizer(), trainer.carried());
    return read_bytes(path);
  }

  Config config;
  AveragingTask task;
  Trainer trainer;
};

// A row that reads a text, written out. It remembers embeddings, not tokens: the table may have changed since.
class RowByHand {
 public:
  // The sum of the losses of a window that begins at token `at` of the text, whose last token has no target.
  double read(const Tensor& table, const std::vector<std::int32_t>& text, std::int64_t at, std::int64_t length) {
    const auto n = std::ssize(text);
    const auto token = [&](std::int64_t i) { return text[static_cast<std::size_t>(i % n)]; };
    double sum = 0;
    for (std::int64_t i = at; i < at + length; ++i) {
      if (i % n != n - 1) sum += loss(table, token(i), token(i + 1));
    }
    for (std::int64_t i = at; i < at + length; ++i) memory_.push_back(row_of(table, token(i)));
    const auto most = static_cast<std::size_t>(kCapacity);
    if (memory_.size() > most) memory_.erase(memory_.begin(), memory_.end() - static_cast<std::ptrdiff_t>(most));
    return sum;
  }

 private:
  static std::vector<double> row_of(const Tensor& table, std::int64_t row) {
    std::vector<double> values;
    for (std::int64_t c = 0; c < table.shape()[1]; ++c) values.push_back(table.at(row * table.shape()[1] + c));
    return values;
  }

  double loss(const Tensor& table, std::int32_t id, std::int32_t target) const {
    std::vector<double> h = row_of(table, id), logits;
    for (std::size_t c = 0; c < h.size(); ++c) {
      for (const auto& remembered : memory_) h[c] += remembered[c] / static_cast<double>(memory_.size());
    }
    double total = 0;
    for (std::int64_t v = 0; v < table.shape()[0]; ++v) {
      double logit = 0;
      for (std::size_t c = 0; c < h.size(); ++c) logit += row_of(table, v)[c] * h[c];
      logits.push_back(logit);
      total += std::exp(logit);
    }
    return std::log(total) - logits[static_cast<std::size_t>(target)];
  }

  std::vector<std::vector<double>> memory_;
};

// The mean loss of the `batches` first batches of an evaluation of the validation text.
double evaluation_by_hand(Run& run, std::int64_t batches) {
  const Tensor table = run.trainer.store().find("wte.weight").value();
  const std::vector<std::int32_t>& text = run.task.val_text();
  const std::int64_t length = run.config.block_size, count = run.task.eval_batches(Part::val);
  double sum = 0;
  std::int64_t targets = 0;
  for (std::int64_t row = 0; row < run.config.batch_size; ++row) {
    const std::int64_t begin = row * count * length;  // of its stretch
    const std::int64_t end = std::min<std::int64_t>(begin + batches * length, std::ssize(text) - 1);
    RowByHand by_hand;
    for (std::int64_t at = begin; at < end; at += length) {
      const std::int64_t tokens = std::min(length, end - at);
      sum += by_hand.read(table, text, at, tokens);
      targets += tokens;
    }
  }
  return sum / static_cast<double>(targets);
}

bool same_elements(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return false;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    if (a.at(i) != b.at(i)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("each step continues with the memory that its row and micro-batch left in the step before") {
  Run run;
  const Config& c = run.config;
  const std::int64_t rows = c.batch_size * c.grad_accum;
  const ContinuedOrder order(97, c.block_size, rows, 4);
  std::vector<RowByHand> by_hand(static_cast<std::size_t>(rows));
  for (std::int64_t step = 0; step < 45; ++step) {  // each row reads the text more than twice
    const Tensor table = run.trainer.store().find("wte.weight").value().clone();
    double sum = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      sum += by_hand[static_cast<std::size_t>(row)].read(table, run.task.train_text(), order.start(step, row),
                                                         c.block_size);
    }
    const StepReport report = run.trainer.step().value();
    INFO("step " << step);
    REQUIRE(report.loss == Approx(sum / static_cast<double>(run.task.targets(step))).epsilon(1e-12));
    for (std::int64_t micro = 0; micro < c.grad_accum; ++micro)
      REQUIRE(run.memory(micro).shape()[1] == std::min(kCapacity, (step + 1) * c.block_size));
  }
}

TEST_CASE("a step that is abandoned, an evaluation and the check before a checkpoint leave the memory as it was") {
  Run straight, disturbed;
  for (int step = 0; step < 6; ++step) {
    const Tensor before = disturbed.trainer.carried().values();
    int calls = 0;
    REQUIRE_FALSE(disturbed.trainer.step([&] { return ++calls == 2; }).has_value());
    REQUIRE(same_elements(disturbed.trainer.carried().values(), before));
    disturbed.trainer.evaluate();
    disturbed.trainer.require_finite();
    REQUIRE(same_elements(disturbed.trainer.carried().values(), before));
    REQUIRE(straight.trainer.step()->loss == disturbed.trainer.step()->loss);
    REQUIRE(same_elements(straight.trainer.carried().values(), disturbed.trainer.carried().values()));
  }
  REQUIRE(same_elements(straight.trainer.store().values(), disturbed.trainer.store().values()));
}

TEST_CASE("a step that diverges leaves the memory as it was, and is searched for the cause with that memory") {
  Run run;
  for (int i = 0; i < 2; ++i) run.trainer.step();
  // The oldest token of the memory, which the step forgets.
  run.trainer.carried().of(0)->tensors()[0].second->data<double>()[0] = std::numeric_limits<double>::infinity();
  const Tensor before = run.trainer.carried().values();
  const std::string said = error_message<DivergedError>([&] { run.trainer.step(); });
  INFO(said);
  REQUIRE(contains(said, "diverged: the loss of step 3"));
  REQUIRE(contains(said, "is the output of mean"));
  REQUIRE(same_elements(run.trainer.carried().values(), before));
}

TEST_CASE("a memory that is not finite is not saved") {
  Run run;
  run.trainer.step();
  run.trainer.require_finite();
  run.trainer.carried().of(1)->tensors()[0].second->data<double>()[3] = std::numeric_limits<double>::infinity();
  REQUIRE(contains(error_message<DivergedError>([&] { run.trainer.require_finite(); }), "memory of the model"));
}

TEST_CASE("an evaluation reads stretches of the text from an empty memory on, and a sample is their beginning") {
  Run run;
  for (int i = 0; i < 5; ++i) run.trainer.step();
  const auto loss = [&](std::int64_t most) {
    return mean_loss(run.trainer.model(), run.task, Part::val, most, {})->mean;
  };
  REQUIRE(run.task.eval_batches(Part::val) == 18);
  for (const std::int64_t most : {1, 2, 4, 17, 18}) {
    INFO(most << " batches");
    REQUIRE(loss(most) == Approx(evaluation_by_hand(run, most)).epsilon(1e-12));
    REQUIRE(loss(most) == loss(most));
    const auto both = full_and_sampled_loss(run.trainer.model(), run.task, Part::val, most, {});
    REQUIRE(both->whole.mean == loss(0));
    REQUIRE(both->sample.mean == loss(most));
  }
  REQUIRE(mean_loss(run.trainer.model(), run.task, Part::val, 0, {})->targets == 262);
  // The evaluation of the training text has a memory of its own.
  const EvalReport report = run.trainer.evaluate().value();
  REQUIRE(report.val_loss.value() == loss(0));
  REQUIRE(report.train_loss == mean_loss(run.trainer.model(), run.task, Part::train, 20, {})->mean);
}

TEST_CASE("the table of models says which of them carry a state") {
  for (const auto& [name, config] : every_small_model()) {
    INFO(name);
    const SmallTrainer small(config);
    REQUIRE(carries_state(config) == (small.trainer.model().make_carried(1) != nullptr));
  }
  Config without_memory = small_model_config("transformer-xl");
  REQUIRE(carries_state(without_memory));
  without_memory.memory = 0;
  REQUIRE_FALSE(carries_state(without_memory));
}

TEST_CASE("a run continues from the checkpoint of every step as if it had not been stopped, at any thread count") {
  const TemporaryFolder folder;
  constexpr int kSteps = 6;
  Run straight;
  std::vector<std::string> saved = {straight.save(folder / "0.maki")};
  for (int step = 1; step <= kSteps; ++step) {
    straight.trainer.step();
    saved.push_back(straight.save(folder / (std::to_string(step) + ".maki")));
  }
  for (int from = 0; from < kSteps; ++from) {
    const ThreadsScope threads(1 + from % 3);
    Run resumed;
    if (from % 2 == 0) resumed.trainer.step();  // what is in memory is replaced
    resumed.trainer.restore({folder / (std::to_string(from) + ".maki"), resumed.trainer.trainable()});
    for (int step = from; step < kSteps; ++step) {
      INFO("from step " << from << " to step " << step + 1);
      REQUIRE(resumed.save(folder / "resumed.maki") == saved[static_cast<std::size_t>(step)]);
      resumed.trainer.step();
    }
    REQUIRE(resumed.save(folder / "resumed.maki") == saved.back());
  }
}

TEST_CASE("the section memory comes last, has one correct length, and is absent if nothing is carried") {
  const TemporaryFolder folder;
  Run run;
  const std::int64_t element = 8 * 2 * 3 * AveragingTask::kWidth;  // bytes per token of memory, in all rows
  for (const std::int64_t tokens : {0, 5, 7, 7}) {
    run.save(folder / "a.maki");
    const Sections sections = sections_of(folder / "a.maki");
    REQUIRE(sections.back().first == "memory");
    REQUIRE(std::ssize(sections.back().second) == element * tokens);
    run.trainer.step();
  }
  // Micro-batches follow each other, each as [batch, length, width].
  run.save(folder / "a.maki");
  const std::string bytes = sections_of(folder / "a.maki").back().second;
  for (const std::int64_t micro : {0, 1}) {
    const Tensor& memory = run.memory(micro);
    REQUIRE(std::memcmp(bytes.data() + micro * memory.numel() * 8, memory.data<double>(),
                        static_cast<std::size_t>(memory.numel() * 8)) == 0);
  }
  REQUIRE_FALSE(same_elements(run.memory(0), run.memory(1)));
  Run plain(carried_config(), 0);
  plain.trainer.step();
  plain.save(folder / "plain.maki");
  REQUIRE(sections_of(folder / "plain.maki").back().first == "exp_avg_sq");
}

TEST_CASE("a memory that is damaged, missing, too much or not finite is rejected, and nothing is loaded from it") {
  const TemporaryFolder folder;
  Run run;
  for (int i = 0; i < 3; ++i) run.trainer.step();
  run.save(folder / "good.maki");
  const Sections good = sections_of(folder / "good.maki");
  const auto says = [&](const std::function<void(Sections&)>& change) {
    Sections sections = good;
    change(sections);
    const ContainerReader file(write_sections(folder / "forged.maki", sections));
    const Tensor before = run.trainer.carried().values();
    const std::string checked =
        error_message<CorruptFile>([&] { VerifiedCheckpoint(file.path(), run.trainer.trainable()); });
    const std::string loaded = error_message<CorruptFile>([&] { load_memory(file, run.trainer.carried(), 15); });
    REQUIRE(checked.empty() == loaded.empty());
    if (!checked.empty()) REQUIRE(checked.starts_with(file.path()));
    REQUIRE(same_elements(run.trainer.carried().values(), before));
    return checked;
  };
  REQUIRE(says([](Sections&) {}).empty());
  REQUIRE(contains(says([](Sections& s) { s.pop_back(); }), "no section memory"));
  REQUIRE(contains(says([](Sections& s) { s.back().second.pop_back(); }), "must have 1008 bytes; got 1007"));
  REQUIRE(contains(says([](Sections& s) { s.back().second += std::string(144, '\0'); }), "must have 1008 bytes"));
  REQUIRE(contains(says([](Sections& s) { s.back().second.clear(); }), "must have 1008 bytes"));
  for (const double value : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    for (const std::size_t at : {0U, 63U, 125U}) {
      const auto put = [&](Sections& s) { std::memcpy(s.back().second.data() + 8 * at, &value, 8); };
      REQUIRE(contains(says(put), "section memory contains a number that is not finite"));
    }
  }
  // A model that carries nothing has no such section.
  Run plain(carried_config(), 0);
  REQUIRE(
      contains(error_message<CorruptFile>([&] { VerifiedCheckpoint(folder / "good.maki", plain.trainer.trainable()); }),
               "unknown section memory"));
}

TEST_CASE("states of another form are rejected when they are made") {
  struct Filled final : Model {
    const char* kind() const override { return "gpt"; }
    Tensor loss(const Batch&, const CrossEntropy&, State*) const override { return {}; }
    std::unique_ptr<State> make_carried(std::int64_t batch) const override {
      auto state = std::make_unique<AveragingState>(batch, 2, 3, DType::float32);
      state->append(zeros({batch, 1, 3}, DType::float32));
      return state;
    }
    double attention_flop(std::int64_t) const override { return 1; }
    std::int64_t activation_bytes(std::int64_t, std::int64_t) const override { return 1; }
  };
  REQUIRE(
      contains(error_message<Error>([] { CarriedStates(Filled(), 1, 4); }), "must be [4, 0, …]; memory is [4, 1, 3]"));
  REQUIRE(contains(error_message<Error>([] { CarriedStates(Filled(), 0, 4); }), "at least 1 micro-batch; got 0"));
  Run run;
  const Tensor two = zeros({2}, DType::float64);
  REQUIRE(contains(error_message<Error>([&] { run.trainer.carried().restore(two, 5); }),
                   "for 5 tokens 90 elements; got 2"));
  REQUIRE(contains(error_message<Error>([&] { run.trainer.carried().restore(zeros({144}, DType::float64), 8); }),
                   "at most 7 tokens"));
  REQUIRE(run.trainer.carried().layout().numel(7) == 126);
  REQUIRE(CarriedLayout().numel(7) == 0);
  // Sizes of a forged checkpoint: no state is made for each micro-batch, and no product overflows.
  const AveragingModel& model = dynamic_cast<const AveragingModel&>(run.trainer.model());
  const CarriedLayout forged(model, 1'000'000, 1'000'000);
  REQUIRE(forged.numel(1) == 3'000'000'000'000);
  REQUIRE(forged.numel(1'000'000) == Shape::kMaxElements);
  run.trainer.step();
  run.trainer.carried().clear();
  REQUIRE(run.trainer.carried().values().numel() == 0);
}
