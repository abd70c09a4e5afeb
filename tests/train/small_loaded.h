// Small language models with every option that changes what is inside them, as they are loaded from a checkpoint.
#pragma once

#include <string>
#include <vector>

#include "tests/files.h"
#include "tests/nn/small_gpt.h"
#include "tests/train/every_small_model.h"
#include "tests/train/small_checkpoint.h"
#include "tests/train/small_data.h"
#include "train/run/loaded_model.h"

namespace maki::tests {

/// Two layers and four heads of four columns for each kind of model that predicts the next token, with dropout, which
/// nothing that only looks at a model may apply; and gpt with each option.
inline std::vector<SmallModel> small_language_models() {
  std::vector<SmallModel> list;
  const auto add = [&](const std::string& name, const std::string& model, const auto& change) {
    Config config = small_model_config(model);
    config.n_head = 4;
    config.n_embd = 16;
    config.block_size = 12;
    config.val_fraction = 0;
    change(config);
    list.push_back({name, config});
  };
  add("gpt", "gpt", [](Config&) {});
  add("tied head and biases", "gpt", [](Config& c) { c.tie_weights = c.bias = true; });
  add("head of its own and no biases", "gpt", [](Config& c) { c.tie_weights = c.bias = false; });
  add("sinusoidal", "gpt", [](Config& c) { c.positions = Positions::sinusoidal; });
  add("rotary", "gpt", [](Config& c) { c.positions = Positions::rotary; });
  add("no positions", "gpt", [](Config& c) { c.positions = Positions::none; });
  add("post-norm", "gpt", [](Config& c) { c.norm_order = NormOrder::post; });
  add("normalized, rotary and grouped keys", "gpt", [](Config& c) {
    c.qk_norm = true;
    c.n_kv_head = 2;
    c.positions = Positions::rotary;
  });
  add("n-grams and convolutions", "gpt", [](Config& c) {
    c.ngram_orders = {2};
    c.ngram_rows = 20;
    c.conv_width = 2;
  });
  add("prior", "gpt", [](Config& c) { c.ngram_prior = 3; });
  add("recomputed blocks", "gpt", [](Config& c) { c.recompute_blocks = true; });
  add("linear, elu", "linear", [](Config& c) { c.attention = "elu"; });
  add("linear, softmax", "linear", [](Config& c) { c.attention = "softmax"; });
  add("linear, random", "linear", [](Config& c) { c.attention = "random:8"; });
  add("linear, nystrom", "linear", [](Config& c) { c.attention = "nystrom:6"; });
  add("linear, prior", "linear", [](Config& c) { c.ngram_prior = 3; });
  add("transformer-xl", "transformer-xl", [](Config&) {});
  add("transformer-xl, prior", "transformer-xl", [](Config& c) { c.ngram_prior = 3; });
  return list;
}

/// Writes the checkpoint of such a model for a text of six letters, with random weights that make attention far from
/// uniform.
inline std::string write_small_model(const std::string& path, const Config& config) {
  const Dataset data = dataset_of(seeded_text(400, "abcdef"), config);
  const LanguageModelTask task(config, data);
  Trainer trainer(config, task);
  randomize(trainer.store(), 5);
  CheckpointState state = task.data_state();
  state.step = 3;
  state.config = config;
  Unsynced fs;
  write_checkpoint(fs, path, state, trainer.store(), trainer.optimizer(), trainer.carried());
  return path;
}

/// The best or last checkpoint of a run that a released version wrote, such as "encoder".
inline std::string golden_checkpoint(const std::string& name) {
  return std::string(MAKI_SOURCE_DIR) + "/tests/golden/" + name + "/checkpoints/step-00000005.maki";
}

}  // namespace maki::tests
