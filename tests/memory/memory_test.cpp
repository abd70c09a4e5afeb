// A training step after the second allocates no memory. Nor does the resident memory of the process grow.
#include <cstdlib>
#include <fstream>
#include <sys/mman.h>
#include <unistd.h>

#include "data/text/corpus.h"
#include "nn/models/encoder.h"
#include "nn/models/seq2seq.h"
#include "optim/adam.h"
#include "tests/catch.h"
#include "tests/memory/allocations.h"
#include "tests/train/text_trainer.h"
#include "train/loop/trainer.h"

using namespace maki;
using namespace maki::tests;

namespace {

Config config_of(std::int64_t n_embd, std::int64_t block_size) {
  Config config;
  config.n_layer = config.n_head = 2;
  config.n_embd = n_embd;
  config.block_size = block_size;
  config.batch_size = 3;
  config.grad_accum = 3;
  config.dropout = 0.1;
  config.bias = true;
  config.lr_decay_steps = 100;
  return config;
}

Dataset dataset_of(const Config& config) {
  Corpus corpus;
  for (int i = 0; i < 400; ++i) corpus.text += "maki unrolls the tape number " + std::to_string(i * i) + ".\n";
  corpus.characters = static_cast<std::int64_t>(corpus.text.size());
  return make_dataset(corpus, 0.1, config.block_size, "char");
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace

TEST_CASE("the hooks count each kind of allocation") {
  begin_counting();
  const auto seen = [](void* p) {  // keeps the compiler from removing unused allocations
    void* volatile kept = p;
    return kept;
  };
  ::operator delete(seen(::operator new(4)));
  std::free(seen(std::malloc(1)));
  std::free(seen(std::aligned_alloc(64, 64)));
  munmap(mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
  const Allocations made = end_counting();
  REQUIRE(made.news == 1);
  REQUIRE(made.mallocs == 2);
  REQUIRE(made.mmaps == 1);
}

TEST_CASE("after two steps a training step allocates no memory") {
  for (const auto& [n_embd, block_size, dtype, optimizer] :
       {std::tuple{16, 16, DType::float32, "adamw"}, std::tuple{272, 136, DType::float32, "adamw"},
        std::tuple{24, 40, DType::float64, "adamw"}, std::tuple{16, 16, DType::float32, "muon"},
        std::tuple{72, 16, DType::float64, "muon"}}) {
    Config config = config_of(n_embd, block_size);
    config.dtype = dtype;
    config.optimizer = optimizer;
    const Dataset data = dataset_of(config);
    TextTrainer trainer(config, data);
    for (int step = 0; step < 2; ++step) REQUIRE(trainer.step().has_value());
    begin_counting();
    for (int step = 0; step < 5; ++step) trainer.step();
    const Allocations made = end_counting();
    INFO("n_embd " << n_embd << ", block_size " << block_size << ", " << to_string(dtype) << ", " << optimizer);
    CHECK(made.news == 0);
    CHECK(made.mallocs == 0);
    CHECK(made.mmaps == 0);
  }
}

namespace {

// Requires that the third step on a batch, and those after it, allocate nothing.
template <class M, class C>
void require_no_allocation(const C& config, const Batch& batch) {
  ParameterStore store;
  const M model(Scope(store), config);
  store.seal(1);
  Adam optimizer(store);
  Tape tape;
  const auto step = [&] {
    const Tensor loss = [&] {
      const Recording on(tape);
      return model.loss(batch, {.label_smoothing = 0.1});
    }();
    tape.backward(loss);
    optimizer.step(1e-3);
  };
  for (int i = 0; i < 2; ++i) step();
  begin_counting();
  for (int i = 0; i < 3; ++i) step();
  const Allocations made = end_counting();
  CHECK(made.news == 0);
  CHECK(made.mallocs == 0);
  CHECK(made.mmaps == 0);
}

}  // namespace

TEST_CASE("after two steps a training step of an encoder or of an encoder-decoder allocates no memory") {
  const Tensor ids = full({4, 6}, DType::int32, 1);
  Tensor mask = full({4, 6}, DType::int32, 1), targets = full({4, 6}, DType::int32, 2);
  mask.data<std::int32_t>()[5] = 0;
  targets.data<std::int32_t>()[5] = CrossEntropy{}.ignored;
  const Batch batch{.ids = ids, .targets = targets, .source = ids, .source_mask = mask};
  const TransformerConfig config{
      .n_layer = 2, .n_head = 2, .n_embd = 16, .block_size = 8, .vocab_size = 5, .dropout = 0.1};
  require_no_allocation<Seq2SeqModel>(Seq2SeqConfig{config, 5}, batch);
  require_no_allocation<EncoderModel>(EncoderConfig{config}, batch);
}

TEST_CASE("resident memory is constant over thousands of steps, and each leaves an empty tape") {
  Config tiny = config_of(8, 8);
  tiny.n_layer = tiny.batch_size = tiny.grad_accum = 1;
  for (const auto& [config, steps] : {std::pair{config_of(16, 16), 1000}, {tiny, 10000}}) {
    const Dataset data = dataset_of(config);
    TextTrainer trainer(config, data);
    for (int step = 0; step < 20; ++step) trainer.step();
    const std::int64_t before = resident_bytes();
    std::size_t nodes = 0;
    for (int step = 0; step < steps; ++step) {
      trainer.step();
      nodes += trainer.tape().size();
    }
    const std::int64_t grown = resident_bytes() - before;
    INFO("grew by " << grown << " bytes in " << steps << " steps");
    REQUIRE(nodes == 0);
    REQUIRE(trainer.steps() == 20 + steps);
    REQUIRE(grown < (1 << 20));
  }
}
