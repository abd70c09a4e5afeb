// Blocks that are computed again in the backward pass: the same run, in less memory.
#include "autograd/core/storage.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/train/every_small_model.h"
#include "train/loop/estimate.h"

using namespace maki;
using namespace maki::tests;

namespace {

std::vector<Config> recomputable() {
  std::vector<Config> list;
  for (const SmallModel& small : every_small_model()) {
    Config config = small.config;
    config.recompute_blocks = true;
    if (config.model == "gpt" || config.model == "linear" || config.model == "encoder") list.push_back(config);
  }
  list.push_back(list.front());
  list.back().freeze = {"wte.*", "wpe.*", "h.0.ln_1.*"};
  list.push_back(list.front());
  list.back().lora_rank = 2;
  list.push_back(list.front());
  list.back().grad_accum = 2;
  list.back().norm_order = NormOrder::post;
  list.back().positions = Positions::rotary;
  return list;
}

std::vector<Tensor> trained(const Config& config) {
  SmallTrainer small(config);
  for (int i = 0; i < 3; ++i) small.trainer.step();
  std::vector<Tensor> values = {copy_of<float>(small.trainer.store().values())};
  for (const Moment& moment : small.trainer.optimizer().moments()) values.push_back(copy_of<float>(moment.values));
  return values;
}

// The largest amount of memory in use during a step, beyond what a trainer holds between steps.
std::int64_t memory_of_a_step(const Config& config) {
  SmallTrainer small(config);
  small.trainer.step();
  const std::int64_t before = storage_pool::statistics().bytes_in_use;
  storage_pool::reset_peak();
  small.trainer.step();
  return storage_pool::statistics().peak_bytes - before;
}

}  // namespace

TEST_CASE("runs with blocks that are recomputed have the same bits") {
  for (Config config : recomputable()) {
    INFO(training_toml(config));
    const std::vector<Tensor> recomputed = trained(config);
    config.recompute_blocks = false;
    const std::vector<Tensor> kept = trained(config);
    REQUIRE(recomputed.size() == kept.size());
    for (std::size_t i = 0; i < kept.size(); ++i) REQUIRE(same_bits(recomputed[i], kept[i]));
  }
}

TEST_CASE("recomputed blocks need a fraction of the memory, as estimated") {
  for (const char* const model : {"gpt", "encoder", "linear"}) {
    INFO(model);
    Config config = small_model_config(model);
    config.n_layer = 8;
    config.n_embd = config.block_size = 64;
    config.batch_size = 8;
    const std::int64_t kept = memory_of_a_step(config);
    config.recompute_blocks = true;
    const std::int64_t recomputed = memory_of_a_step(config);
    REQUIRE(recomputed < kept / 3);
    const MemoryNeed need = memory_needed(config, random_vocab_sizes(config, 11));
    REQUIRE(need.activations < recomputed * 3 / 2);
    REQUIRE(need.activations > recomputed * 2 / 3);
  }
}

TEST_CASE("recompute_blocks is a field of the run, for models whose blocks read the one before alone") {
  REQUIRE_FALSE(find_field("recompute_blocks").is_training());
  for (const char* const model : {"seq2seq", "transformer-xl"}) {
    Config config = small_model_config(model);
    config.recompute_blocks = true;
    REQUIRE(contains(
        error_message<Error>([&] { validate(config); }),
        std::string("recompute_blocks: has an effect only if model is gpt or linear or encoder; it is ") + model));
  }
}
