// LoRA in every kind of model: what is trained, what a step changes, gradients, and the merged model.
#include <cmath>
#include <set>

#include "autograd/gradcheck.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/train/every_small_model.h"
#include "tests/train/small_checkpoint.h"
#include "train/run/config/trained_parameters.h"
#include "train/run/loaded_model.h"

using namespace maki;
using namespace maki::tests;

namespace {

Config adapted(Config config, std::int64_t rank = 2) {
  config.lora_rank = rank;
  return config;
}

// The loss of the first batch, without dropout.
double first_loss(SmallTrainer& small) {
  const Model& model = small.trainer.model();
  CarriedStates carried(model, 1, small.trainer.config().batch_size);
  Batch batch;
  small.task->fill(0, 0, batch);
  return model.loss(batch, {.ignored = kIgnoredTarget, .sum = true}, carried.of(0)).item();
}

}  // namespace

TEST_CASE("adapters alone are trained, their base keeps its bits, and a new one changes no loss") {
  for (const SmallModel& small : every_small_model()) {
    INFO(small.name);
    SmallTrainer plain(small.config), tuned(adapted(small.config));
    REQUIRE(first_loss(plain) == first_loss(tuned));
    ParameterStore& store = tuned.trainer.store();
    std::vector<Tensor> before;
    std::size_t adapters = 0;
    for (const auto& parameter : store.parameters()) {
      REQUIRE(parameter->trainable() == is_adapter(parameter->name()));
      adapters += is_adapter(parameter->name()) ? 1 : 0;
      before.push_back(copy_of_value(*parameter));
    }
    REQUIRE(adapters % 2 == 0);
    REQUIRE(adapters >= 2 * 2 * 4);  // two layers, four maps, two matrices
    for (int i = 0; i < 3; ++i) tuned.trainer.step();
    std::size_t at = 0;
    for (const auto& parameter : store.parameters()) {
      INFO(parameter->name());
      REQUIRE(same_bits(parameter->value(), before[at++]) != is_adapter(parameter->name()));
    }
    for (const Moment& moment : tuned.trainer.optimizer().moments()) {
      for (const auto& part : moment.parts) REQUIRE(is_adapter(part.parameter->name()));
    }
    REQUIRE(first_loss(plain) != first_loss(tuned));
  }
}

TEST_CASE("the gradients of adapters are those of differences in every kind of model") {
  for (const SmallModel& small : every_small_model()) {
    INFO(small.name);
    Config config = adapted(small.config);
    config.dtype = DType::float64;
    config.activation = Activation::gelu_tanh;
    const auto task = make_random_task(config, random_vocab_sizes(config, 11), 1);
    ParameterStore store(DType::float64);
    const std::unique_ptr<Model> model = task->make_model(Scope(store));
    store.seal(3);
    for (const auto& parameter : store.parameters()) {  // B is initially 0, and A would have no gradient
      const RandomStream stream(4, RandomPurpose::test, parameter->name());
      double* const value = store.values().data<double>() + parameter->offset();
      for (std::int64_t i = 0; i < parameter->shape().numel(); ++i) {
        value[i] += 0.1 * stream.normal(static_cast<std::uint64_t>(i));
      }
    }
    store.mark_changed();
    Batch batch;
    task->fill(0, 0, batch);
    CarriedStates carried(*model, 1, config.batch_size);
    const auto results = gradcheck(store,
                                   [&] {
                                     CarriedStates::Rewind rewind(carried);
                                     return model->loss(batch, {}, carried.of(0));
                                   },
                                   {.relative_floor = 1e-3, .directions = 2, .entries = 4, .halvings = 8});
    REQUIRE(results.size() >= 16);
    for (const GradcheckResult& r : results) {
      INFO(r.name << " " << r.worst);
      REQUIRE(is_adapter(r.name));
      REQUIRE(r.passed(1e-6));
    }
  }
}

TEST_CASE("lora_alpha / lora_rank multiplies the adapters, 1 without lora_alpha, and lora_targets chooses layers") {
  Config config = adapted(small_model_config("gpt"), 4);
  REQUIRE(adapter_scale(config) == 1);
  config.lora_alpha = 8;
  REQUIRE(adapter_scale(config) == 2);
  config.lora_targets = {"*.attn.*", "h.1.mlp.c_fc.weight"};
  SmallTrainer trainer(config);
  std::set<std::string> names;
  for (const auto& parameter : trainer.trainer.store().parameters()) {
    if (parameter->name().ends_with("lora_a")) names.insert(parameter->name());
  }
  REQUIRE(names == std::set<std::string>{"h.0.attn.c_attn.lora_a", "h.0.attn.c_proj.lora_a", "h.1.attn.c_attn.lora_a",
                                         "h.1.attn.c_proj.lora_a", "h.1.mlp.c_fc.lora_a"});
  config.freeze = {"h.0.*"};
  SmallTrainer partly(config);
  REQUIRE_FALSE(partly.trainer.store().find("h.0.attn.c_proj.lora_b").trainable());
  REQUIRE(partly.trainer.store().find("h.1.attn.c_proj.lora_b").trainable());
  const auto said = [&](const std::string& target) {
    return error_message<Error>([&] {
      config.lora_targets = {target};
      const SmallTrainer refused(config);
    });
  };
  REQUIRE(said("wte.*") ==
          "lora_targets: every pattern must match the weight of a linear layer of a block; got wte.*; the most similar "
          "name is h.0.attn.c_attn.weight");
  REQUIRE(contains(said("*.attention.*"), "the most similar name is h.0."));
}

TEST_CASE("a merged model has the loss of the adapters to rounding, in every kind of model") {
  for (const SmallModel& small : every_small_model()) {
    INFO(small.name);
    Config config = adapted(small.config);
    config.lora_alpha = 6;
    SmallTrainer tuned(config);
    for (int i = 0; i < 3; ++i) tuned.trainer.step();
    const Config plain_config = without_adapters(config);
    SmallTrainer plain(plain_config);
    const double base = first_loss(plain);
    merge_adapters(tuned.trainer.store(), adapter_scale(config), plain.trainer.store());
    const double loss = first_loss(tuned);
    REQUIRE(std::abs(first_loss(plain) - loss) < 1e-5 * std::abs(loss));
    REQUIRE(std::abs(base - loss) > 1e-4 * std::abs(loss));
  }
}

TEST_CASE("the optimizer keeps moments for what trains alone, and a checkpoint has no others") {
  Config config = small_model_config("gpt");
  config.n_embd = 64;
  SmallTrainer plain(config), tuned(adapted(config, 1));
  const auto moments = [](SmallTrainer& trainer) {
    std::int64_t sum = 0;
    for (const Moment& moment : trainer.trainer.optimizer().moments()) sum += moment.values.numel();
    return sum;
  };
  std::int64_t trained = 0, all = 0;
  for (const auto& parameter : tuned.trainer.store().parameters()) {
    trained += parameter->trainable() ? parameter->shape().numel() : 0;
    all += parameter->shape().numel();
  }
  // Two layers; c_attn, c_proj, c_fc, c_proj: in + out.
  REQUIRE(trained == 2 * (64 + 192 + 64 + 64 + 64 + 256 + 256 + 64));
  REQUIRE(moments(tuned) == 2 * trained);
  REQUIRE(moments(plain) >= 2 * (all - trained));
}

TEST_CASE("a model in memory is merged from a checkpoint, in either type") {
  const TemporaryFolder folder;
  Config config = smallest_config();
  config.n_embd = 8;
  config.block_size = 4;
  config.lora_rank = 2;
  config.learning_rate = 0.1;
  config.warmup_steps = 0;
  const std::string path = write_smallest(folder / "adapted.maki", {}, config);
  for (const DType dtype : {DType::float32, DType::float64}) {
    const LoadedModel tuned(path, dtype), merged(tuned, MergeAdapters());
    REQUIRE(merged.state.config.lora_rank == 0);
    REQUIRE(merged.store.parameters().size() + 8 == tuned.store.parameters().size());
    const Tensor ids = tensor(std::vector<std::int32_t>{0, 1, 2, 0}, {1, 4});
    const auto logits = [&](const LoadedModel& loaded) {
      const auto state = loaded.generator().start(1);
      return loaded.generator().next_logits(ids, *state);
    };
    const Tensor expected = logits(tuned), got = logits(merged);
    for (std::int64_t i = 0; i < expected.numel(); ++i) REQUIRE(std::abs(expected.at(i) - got.at(i)) < 1e-6);
  }
}

TEST_CASE("a merged model has the n-gram prior of the adapted one") {
  const TemporaryFolder folder;
  Config config = smallest_config();
  config.block_size = 4;
  config.lora_rank = 1;
  config.ngram_prior = 3;
  const std::string path = write_smallest(
      folder / "adapted.maki",
      [](CheckpointState& state) {
        Tokens text(3);
        for (int i = 0; i < 20; ++i) text.append(std::vector<std::int32_t>{0, 1, 2});
        NgramModel counts(3, 3);
        counts.count(text);
        state.ngram_counts = NgramTrie(counts).save();
      },
      config);
  const LoadedModel tuned(path), merged(tuned, MergeAdapters()), again(merged, MergeAdapters());
  REQUIRE(merged.generator().prior() == tuned.generator().prior());
  REQUIRE(again.generator().prior() == tuned.generator().prior());
  const Tensor ids = tensor(std::vector<std::int32_t>{0, 1, 2, 0}, {1, 4});
  const auto logits = [&](const Generator& model) { return model.next_logits(ids, *model.start(1)); };
  const Tensor expected = logits(tuned.generator()), got = logits(merged.generator());
  for (std::int64_t i = 0; i < expected.numel(); ++i) REQUIRE(std::abs(expected.at(i) - got.at(i)) < 1e-6);
}
