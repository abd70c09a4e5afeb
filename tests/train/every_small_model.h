// The smallest trainers of every kind of model with every task that it can learn, on random data.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/tensors.h"
#include "train/loop/tasks.h"
#include "train/loop/trainer.h"
#include "train/run/config/models.h"

namespace maki::tests {

/// Two layers of width 8, for one kind of model.
inline Config small_model_config(const std::string& model, const std::string& task = "") {
  Config config;
  apply_preset(config, "quickstart");
  config.model = model;
  config.n_layer = config.n_head = config.batch_size = 2;
  config.n_embd = config.block_size = 8;
  config.dropout = 0.1;
  config.lr_decay_steps = 10;
  config.warmup_steps = 0;
  config.learning_rate = 0.01;
  if (!task.empty()) set_field(config, find_field("task"), task);
  fill_open_fields(config);
  return config;
}

/// One for each kind of model and task, and two more of kind gpt, with options that the others lack.
struct SmallModel {
  std::string name;
  Config config;
};
inline std::vector<SmallModel> every_small_model() {
  std::vector<SmallModel> list;
  for (const std::string& model : model_names()) {
    for (const std::string& task : tasks_of_model(model)) {
      list.push_back({model + " " + task, small_model_config(model, task)});
    }
  }
  list.push_back({"gpt with n-grams and all extras", list.front().config});
  Config& config = list.back().config;
  config.ngram_orders = {2};
  config.ngram_rows = 20;
  config.qk_norm = true;
  config.conv_width = 2;
  list.push_back({"gpt with grouped keys", list.front().config});
  list.back().config.n_kv_head = 1;
  return list;
}

/// A trainer on random data with a vocabulary of 11.
struct SmallTrainer {
  explicit SmallTrainer(const Config& config)
      : task(make_random_task(config, random_vocab_sizes(config, 11), 4)), trainer(config, *task) {}
  std::unique_ptr<Task> task;
  Trainer trainer;
};

inline Tensor copy_of_value(const Parameter& parameter) {
  return dispatch(parameter.value().dtype(), [&]<class T>() { return copy_of<T>(parameter.value()); });
}

}  // namespace maki::tests
