// A trainer on a text, together with the task that it needs.
#pragma once

#include "nn/models/gpt.h"
#include "train/loop/language_model_task.h"
#include "train/loop/trainer.h"

namespace maki::tests {

struct TextTask {
  LanguageModelTask text_task;
};

class TextTrainer : private TextTask, public Trainer {
 public:
  /// Requires: the dataset outlives the trainer.
  TextTrainer(const Config& config, const Dataset& data, bool initial_values = true)
      : TextTask{LanguageModelTask(config, data)}, Trainer(config, text_task, initial_values) {}
};

/// The network of a trainer or checkpoint whose model is a `gpt`.
inline const Gpt& gpt_of(const Model& model) { return dynamic_cast<const GptModel&>(model).gpt; }

}  // namespace maki::tests
