// A short run whose sessions are tested, and a text for it.
#pragma once

#include <string>
#include <vector>

#include "tests/train/captured_run.h"

namespace maki::tests {

inline Config tens() {
  Config config = smallest_config();
  config.val_fraction = 0.25;
  config.max_steps = 40;
  config.eval_interval = config.checkpoint_interval = 10;
  config.keep_last = 100;
  config.eval_batches = 0;
  config.learning_rate = config.min_lr = 0.05;
  config.warmup_steps = 0;
  return config;
}

inline std::string abc() {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "abc";
  return text;
}

/// A run of 40 steps, evaluated and saved every ten, all checkpoints kept.
struct SessionRun : CapturedRun {
  explicit SessionRun(const Config& with = tens()) : CapturedRun(with, abc()) {}

  /// Replaces the measurements by evaluations with these losses.
  void measured(const std::vector<BestPointer>& losses) {
    std::filesystem::remove(directory.metrics_file());
    MetricsFile metrics(directory.metrics_file(), 0);
    for (const BestPointer& best : losses)
      metrics.on_eval({.step = best.step, .train_loss = 1, .val_loss = best.loss}, false);
  }
};

}  // namespace maki::tests
