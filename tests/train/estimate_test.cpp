// The memory that a run will need is estimated before it is allocated, and the estimate is close to what the run takes.
#include "train/loop/estimate.h"

#include "autograd/core/storage.h"
#include "autograd/ops.h"
#include "data/io/os.h"
#include "tests/train/averaging_model.h"
#include "tests/train/captured_stderr.h"
#include "tests/train/text_trainer.h"
#include "train/app/describe_run.h"
#include "train/app/progress.h"
#include "train/loop/language_model_task.h"
#include "train/loop/session.h"
#include "train/loop/taught_task.h"

using namespace maki;
using namespace maki::tests;

namespace {

Dataset letters(const Config& config) {
  Corpus corpus;
  for (int i = 0; i < 3000; ++i) corpus.text += "maki"[i % 4];
  corpus.characters = 3000;
  return make_dataset(corpus, 0, config.block_size, config.tokenizer);
}

}  // namespace

TEST_CASE("the memory of a run is estimated closely, for every optimizer and type") {
  Config shape;
  shape.val_fraction = 0;
  shape.lr_decay_steps = 10;
  std::vector<Config> shapes(19, shape);
  shapes[1].n_embd = 256;
  shapes[1].n_layer = 2;
  shapes[2].dtype = DType::float64;
  shapes[2].optimizer = "sgd";
  shapes[3].grad_accum = 5;
  shapes[3].batch_size = 4;
  shapes[4].tokenizer = "byte";
  shapes[4].block_size = 256;
  shapes[4].n_layer = 1;
  shapes[5].batch_size = 1;
  shapes[5].block_size = 16;
  shapes[5].n_embd = 384;
  for (std::size_t i = 6; i < 9; ++i) {
    shapes[i].activation = Activation::swiglu;
    shapes[i].norm = NormKind::rms;
    shapes[i].positions = Positions::rotary;
    shapes[i].n_embd = i == 6 ? 128 : 384;
  }
  shapes[7].bias = false;
  shapes[8].dtype = DType::float64;
  shapes[8].norm_order = NormOrder::post;
  shapes[9].positions = Positions::sinusoidal;
  shapes[9].block_size = 256;
  shapes[9].n_layer = 1;
  for (std::size_t i = 10; i < 14; ++i) {
    const char* const forms[] = {"elu", "random:16", "random:256", "nystrom:32"};
    shapes[i].model = "linear";
    shapes[i].attention = forms[i - 10];
    shapes[i].block_size = 256;
  }
  for (std::size_t i = 14; i < 16; ++i) {
    shapes[i].model = "transformer-xl";
    shapes[i].positions = Positions::sinusoidal;
    shapes[i].memory = i == 14 ? 0 : 200;
    shapes[i].block_size = i == 14 ? 64 : 200;
  }
  for (std::size_t i = 16; i < 18; ++i) {
    shapes[i].qk_norm = true;
    shapes[i].conv_width = 4;
    shapes[i].activation = Activation::relu_squared;
    shapes[i].model = i == 16 ? "gpt" : "linear";
    shapes[i].attention = i == 16 ? "softmax" : "elu";
  }
  shapes[18].n_head = 8;
  shapes[18].n_kv_head = 1;
  shapes[18].qk_norm = true;
  shapes[18].activation = Activation::relu_squared;
  for (const Config& config : shapes) {
    const Dataset data = letters(config);
    const MemoryNeed need = memory_needed(config, data.tokenizer->vocab_size());
    storage_pool::trim();
    const std::int64_t before = storage_pool::statistics().bytes_in_use;
    storage_pool::reset_peak();
    TextTrainer trainer(config, data);
    trainer.step();
    trainer.step();
    const auto taken = static_cast<double>(storage_pool::statistics().peak_bytes - before);
    INFO(training_toml(config) << "estimated " << need.total() << " (activations " << need.activations << "), taken "
                               << taken);
    CHECK(need.parameters == trainer.store().numel());
    // What is carried to the next step, and while that is taken, what was carried to it.
    const CarriedStates& carried = trainer.carried();
    CHECK(need.carried == (carried.any() ? 2 * size_of(config.dtype) * carried.values().numel() : 0));
    CHECK(static_cast<double>(need.total()) > 0.8 * taken);
    CHECK(static_cast<double>(need.total()) < 1.3 * taken);
  }
}

TEST_CASE("what a prior and teachers predict is part of the memory of a run") {
  using Teachers = std::vector<std::string>;
  for (const auto& [prior, teacher] : {std::pair{0, Teachers{"@counts"}}, {3, {"@counts"}}, {3, {}}}) {
    Config config = smallest_config();
    config.tokenizer = "byte";
    config.block_size = 128;
    config.batch_size = 16;
    config.val_fraction = 0;
    config.ngram_prior = prior;
    config.teacher = teacher;
    const Dataset data = letters(config);
    const MemoryNeed need = memory_needed(config, data.tokenizer->vocab_size());
    std::unique_ptr<Task> task = std::make_unique<LanguageModelTask>(config, data);
    if (!teacher.empty()) task = taught(config, std::move(task));
    storage_pool::trim();
    const std::int64_t before = storage_pool::statistics().bytes_in_use;
    storage_pool::reset_peak();
    Trainer trainer(config, *task, trainable_model(config, *task));
    trainer.step();
    trainer.step();
    const auto taken = static_cast<double>(storage_pool::statistics().peak_bytes - before);
    INFO("prior " << prior << ", " << teacher.size() << " teachers: estimated " << need.total() << " (" << need.expected
                  << " of teachers), taken " << taken);
    CHECK(static_cast<double>(need.total()) > 0.8 * taken);
    CHECK(static_cast<double>(need.total()) < 1.3 * taken);
  }
}

TEST_CASE("logits that learn from teachers are kept whole, and so counted whole") {
  constexpr std::int64_t kVocabulary = 50'000, kLogits = 16 * 1024 * kVocabulary * 4;
  Config config = smallest_config();
  config.batch_size = 16;
  config.block_size = 1024;
  const std::int64_t alone = memory_needed(config, kVocabulary).total();
  config.teacher = {"@counts"};
  // The logits, their gradient and what is expected, instead of a part of the logits.
  REQUIRE(memory_needed(config, kVocabulary).total() == alone + 3 * kLogits - kMaxLogitsBytes);
}

TEST_CASE("each of several ranks needs its part of the moments, and what the tree of its micro-batches holds") {
  Config config;
  config.grad_accum = 8;
  const MemoryNeed alone = memory_needed(config, 65), four = memory_needed(config, 65, 4),
                   eight = memory_needed(config, 65, 8);
  REQUIRE(alone.buffers + alone.collected == 0);
  REQUIRE(alone.gradients == 4 * eight.gradients);
  REQUIRE(four.gradients == 2 * eight.gradients);
  REQUIRE(four.moments == alone.moments / 4);
  REQUIRE(four.moments + four.collected == alone.moments);
  REQUIRE(four.buffers > alone.values / 4);
  for (const MemoryNeed& need : {four, eight}) {
    REQUIRE(need.values == alone.values);
    REQUIRE(need.activations == alone.activations);
  }
  // The moments of tables are not divided.
  config.ngram_orders = {2};
  config.ngram_rows = 1000;
  const std::int64_t tables = memory_needed(config, 65).moments - alone.moments;
  REQUIRE(tables > 0);
  REQUIRE(memory_needed(config, 65, 4).moments == four.moments + tables);
}

TEST_CASE("a run makes its model once, for the estimate, for what is said about it and for training") {
  struct CountedTask final : AveragingTask {
    using AveragingTask::AveragingTask;
    std::unique_ptr<Model> make_model(const Scope& scope) const override {
      ++made;
      return AveragingTask::make_model(scope);
    }
    mutable int made = 0;
  };
  const TemporaryFolder folder;
  Config config = smallest_config();
  config.max_steps = 2;
  const CountedTask task(config, /*capacity=*/4, {0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3}, {0, 1, 2});
  keep_quiet(true);
  auto model = describe_run(config, task, folder / "run", /*resumed=*/false, /*force=*/true);
  keep_quiet(false);
  const Model* const described = model->model.get();
  Trainer trainer(config, task, std::move(model));
  REQUIRE(&trainer.model() == described);
  const RunDirectory run(folder / "run");
  run.create();
  SessionListener nobody;
  REQUIRE(Session(config, trainer, run, nobody).train() == SessionEnd::finished);
  REQUIRE(task.made == 1);
}

TEST_CASE("too little memory is an error that names what lowers the largest part") {
  constexpr std::int64_t kTooMuch = std::int64_t{1} << 60;
  MemoryNeed batches, weights;
  batches.activations = weights.values = kTooMuch;
  Config config;
  config.batch_size = 4;
  REQUIRE_THROWS_WITH(require_memory(config, batches, /*force=*/false),
                      ContainsSubstring("lower --batch-size (now 4; a larger --grad-accum makes up for it)"));
  config.batch_size = 1;
  REQUIRE_THROWS_WITH(require_memory(config, batches, /*force=*/false),
                      ContainsSubstring(fmt::format("available; lower --block-size (now {})", config.block_size)));
  REQUIRE_THROWS_WITH(require_memory(config, weights, /*force=*/false),
                      ContainsSubstring(fmt::format("lower --n-embd (now {})", config.n_embd)));
}

TEST_CASE("too little memory for counts that teach advises to omit them") {
  constexpr std::int64_t kTooMuch = std::int64_t{1} << 60;
  MemoryNeed counting, counts;
  counting.counting = counts.counts = kTooMuch;
  REQUIRE_THROWS_WITH(require_memory({}, counting, /*force=*/false),
                      ContainsSubstring("omit the teacher @counts, or lower --threads (now "));
  REQUIRE_THROWS_WITH(require_memory({}, counts, /*force=*/false),
                      ContainsSubstring("available; omit the teacher @counts, or try it with --force"));
}

TEST_CASE("too little memory is a warning with --force, and enough memory is not mentioned") {
  MemoryNeed need;
  need.values = std::int64_t{1} << 60;
  const Config config;
  REQUIRE_THROWS_WITH(require_memory(config, need, /*force=*/false),
                      Catch::Matchers::EndsWith(", or try it with --force"));
  const std::string said = written_to_stderr([&] { require_memory(config, need, /*force=*/true); });
  REQUIRE(said.starts_with(
      "warning: memory: about 1152921504.6 GB of memory are needed (weights 1152921504.6 GB), but only "));
  REQUIRE(said.ends_with(
      fmt::format(" are available; lower --n-embd (now {}) or --n-layer (now {})\n", config.n_embd, config.n_layer)));
  Config tables;
  tables.ngram_orders = {2};
  tables.ngram_rows = 500;
  REQUIRE_THROWS_WITH(require_memory(tables, need, /*force=*/false),
                      ContainsSubstring(", or --ngram-rows (now 500), or try it"));
  need.values = 1;
  REQUIRE(written_to_stderr([&] { require_memory(config, need, /*force=*/false); }).empty());
}

TEST_CASE("sizes beyond any machine are estimated without allocating memory") {
  Config config;
  config.n_layer = 1000;
  config.n_head = 1;
  config.n_embd = 100'000;
  config.block_size = 1'000'000;
  for (const Positions positions : kPositions) {
    config.positions = positions;
    const MemoryNeed need = memory_needed(config, 100'000);
    REQUIRE(need.parameters > 100'000'000'000'000);
    REQUIRE(need.total() > 16 * need.parameters);
  }
  REQUIRE(format_bytes(1'499'000'000'000) == "1499.0 GB");
  REQUIRE(format_bytes(320'000'000) == "320 MB");
  REQUIRE(format_bytes(5'000) == "5 kB");
  REQUIRE(format_bytes(281) == "281 bytes");
}

TEST_CASE("the available memory is the minimum over the system and its control groups") {
  const auto left = [](const std::vector<std::pair<std::string, std::string>>& files) {
    const TemporaryFolder root;
    for (const auto& [name, text] : files) {
      std::filesystem::create_directories(std::filesystem::path(root / name).parent_path());
      write_bytes(root / name, text);
    }
    return os::available_memory(root.path()).value_or(-1);
  };
  const std::pair<std::string, std::string> system = {"proc/meminfo", "MemTotal: 9 kB\nMemAvailable:   2000 kB\n"};
  const std::pair<std::string, std::string> group = {"proc/self/cgroup", "0::/user/one\n"};
  const std::string v2 = "sys/fs/cgroup/";
  REQUIRE(left({}) == -1);
  REQUIRE(left({system}) == 2'048'000);
  REQUIRE(left({system, group}) == 2'048'000);
  REQUIRE(left({system, group, {v2 + "user/one/memory.max", "max\n"}, {v2 + "user/one/memory.current", "5\n"}}) ==
          2'048'000);
  const std::vector<std::pair<std::string, std::string>> limited = {
      system,
      group,
      {v2 + "user/memory.max", "1000000\n"},
      {v2 + "user/memory.current", "400000\n"},
      {v2 + "user/memory.stat", "anon 3\ninactive_file 50000\n"}};
  REQUIRE(left(limited) == 650'000);
  REQUIRE(left({group, {v2 + "memory.max", "10\n"}, {v2 + "memory.current", "30\n"}}) == 0);
  const std::string v1 = "sys/fs/cgroup/memory/";
  REQUIRE(left({system,
                {"proc/self/cgroup", "5:cpu:/x\n4:memory:/\n"},
                {v1 + "memory.limit_in_bytes", "700000"},
                {v1 + "memory.usage_in_bytes", "600000"},
                {v1 + "memory.stat", "cache 1\ntotal_inactive_file 1000\n"}}) == 101'000);
  REQUIRE(os::available_memory().value_or(1) > 0);  // on this machine
}
