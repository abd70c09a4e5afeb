// Predicting hidden tokens of a text from all the others (data/dataset/masking.h): the task of encoders.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/loop/language_model_task.h"

namespace maki {

class MaskedTask final : public Task {
 public:
  /// The windows of LanguageModelTask, whose arguments these are, with hidden tokens. Stride and n-gram counts of
  /// `text` do not apply. The mask token follows the ids of the tokenizer.
  MaskedTask(const Config& config, std::shared_ptr<const Dataset> dataset, EvalText text = {});

  std::unique_ptr<Model> make_model(const Scope& scope) const override;
  VocabSizes vocab_sizes() const override { return mask_token_ + 1; }
  void fill(std::int64_t step, std::int64_t micro, Batch& batch) const override;
  std::int64_t targets(std::int64_t step) const override;
  std::int64_t tokens_in_step(std::int64_t step) const override { return windows_.tokens_in_step(step); }
  double epochs(std::int64_t steps) const override { return windows_.epochs(steps); }
  std::int64_t eval_batches(Part part) const override { return windows_.eval_batches(part); }
  /// What is hidden is a function of the window alone, and not of the seed, so that losses of different runs compare.
  void fill_eval(Part part, std::int64_t i, Batch& batch) const override;
  CheckpointState data_state() const override;
  std::string describe_data() const override { return windows_.describe_data(); }
  std::string describe_step() const override { return windows_.describe_step(); }
  /// Loss, and how many of the hidden tokens are the model's first choice.
  std::vector<ReportLine> measure(const Model& model, const SampledLoss& loss, const MeasureOptions& options,
                                  const StopRequest& stop) const override;

 private:
  Config config_;
  std::shared_ptr<const Dataset> dataset_;
  EvalText text_;
  LanguageModelTask windows_;
  std::int64_t mask_token_;
};

}  // namespace maki
