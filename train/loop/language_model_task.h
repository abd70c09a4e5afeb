// Next-token prediction on a text: the task of decoder-only language models.
#pragma once

#include <optional>

#include "data/dataset/batch.h"
#include "data/dataset/dataset.h"
#include "train/config/config.h"
#include "train/loop/task.h"

namespace maki {

class LanguageModelTask final : public Task {
 public:
  /// Batches of config.batch_size sequences of config.block_size tokens. Either part of the dataset may be empty, in
  /// which case no batch of it may be requested. Requires: the dataset outlives the task.
  LanguageModelTask(const Config& config, const Dataset& dataset);

  std::unique_ptr<Model> make_model(const Scope& scope) const override;
  void fill(std::int64_t step, std::int64_t micro, Batch& batch) const override;
  std::int64_t targets(std::int64_t step) const override { return train_.value().targets(step); }
  std::int64_t tokens_per_step() const override { return train_.value().tokens_per_step(); }
  double epochs(std::int64_t steps) const override { return train_.value().epochs(steps); }
  std::int64_t eval_batches(Part part) const override;
  void fill_eval(Part part, std::int64_t i, Batch& batch) const override;
  CheckpointState data_state() const override;
  std::optional<double> best_possible_loss() const override { return dataset_.best_possible_loss; }
  std::optional<std::string> sample(const Model& model, std::uint64_t seed, std::int64_t step,
                                    const std::function<bool()>& stop) const override;

 private:
  Config config_;
  const Dataset& dataset_;
  std::optional<TrainBatches> train_;
  std::optional<EvalBatches> eval_train_, eval_val_;
};

}  // namespace maki
