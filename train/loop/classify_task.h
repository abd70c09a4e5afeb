// Giving each text one of a set of labels: the task of an encoder with a classifier.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset/labelled.h"
#include "data/dataset/pair_batches.h"
#include "train/loop/task.h"
#include "train/run/config/config.h"

namespace maki {

class ClassifyTask final : public Task {
 public:
  /// Micro-batches of config.batch_size texts of similar length (the last one of an epoch may be smaller). Either part
  /// of the data may be empty, in which case no batch of it may be requested. `what` describes the validation data to
  /// measure().
  ClassifyTask(const Config& config, std::shared_ptr<const LabelledDataset> data,
               std::string what = "validation part of the run's text");

  std::unique_ptr<Model> make_model(const Scope& scope) const override;
  VocabSizes vocab_sizes() const override { return {data_->tokenizer->vocab_size(), 0, std::ssize(data_->labels)}; }
  void fill(std::int64_t step, std::int64_t micro, Batch& batch) const override;
  /// Texts.
  std::int64_t targets(std::int64_t step) const override;
  std::int64_t tokens_in_step(std::int64_t step) const override { return tokens(step, step + 1); }
  std::int64_t tokens_before(std::int64_t step) const override { return tokens(0, step); }
  double epochs(std::int64_t steps) const override;
  std::int64_t eval_batches(Part part) const override;
  void fill_eval(Part part, std::int64_t i, Batch& batch) const override;
  CheckpointState data_state() const override;
  std::string describe_data() const override;
  std::string describe_step() const override;
  bool has_answers() const override { return true; }
  Answers answers(const Model& model, std::int64_t i) const override;
  /// Loss, accuracy and the confusion matrix.
  std::vector<ReportLine> measure(const Model& model, const SampledLoss& loss, const MeasureOptions& options,
                                  const StopRequest& stop) const override;

 private:
  /// How many texts of each label the model gives each label.
  using Confusion = std::vector<std::vector<std::int64_t>>;

  std::int64_t tokens(std::int64_t begin_step, std::int64_t end_step) const;
  Confusion no_answers() const;
  void add_answers(const Model& model, std::int64_t i, Confusion& counts) const;

  Config config_;
  std::shared_ptr<const LabelledDataset> data_;
  std::string what_;
  std::optional<PairTrainBatches> train_;
  std::optional<PairEvalBatches> eval_train_, eval_val_;
};

}  // namespace maki
