// Writing the target of each source in parallel text: the task of encoder–decoder models.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset/pair_batches.h"
#include "train/loop/task.h"
#include "train/run/config/config.h"

namespace maki {

class TranslationTask final : public Task {
 public:
  /// Micro-batches of config.batch_size pairs of similar length (the last one of an epoch may be smaller). Either part
  /// of the data may be empty, in which case no batch of it may be requested. `what` describes the validation data to
  /// measure().
  TranslationTask(const Config& config, std::shared_ptr<const PairDataset> data,
                  std::string what = "validation part of the run's text");

  std::unique_ptr<Model> make_model(const Scope& scope) const override;
  VocabSizes vocab_sizes() const override {
    return {ends_.target + 1, config_.share_vocabulary ? 0 : ends_.source + 1};
  }
  void fill(std::int64_t step, std::int64_t micro, Batch& batch) const override;
  std::int64_t targets(std::int64_t step) const override { return targets(first_batch(step), first_batch(step + 1)); }
  /// Target tokens, with the end of each target.
  std::int64_t tokens_in_step(std::int64_t step) const override { return targets(step); }
  std::int64_t tokens_before(std::int64_t step) const override { return targets(0, first_batch(step)); }
  double epochs(std::int64_t steps) const override;
  std::int64_t eval_batches(Part part) const override;
  void fill_eval(Part part, std::int64_t i, Batch& batch) const override;
  CheckpointState data_state() const override;
  std::string describe_data() const override;
  std::string describe_step() const override;
  /// Loss, the share of targets that are matched exactly and, if an output has four words, BLEU-4, all over the same
  /// batches. Of these only the loss, once `stop` is requested.
  std::vector<ReportLine> measure(const Model& model, const SampledLoss& loss, const MeasureOptions& options,
                                  const StopRequest& stop) const override;
  /// A source of the validation data (else of the training data), its translation and the target: another one at each
  /// step, whatever the seed.
  std::optional<std::string> sample(const Model& model, std::uint64_t seed, std::int64_t step,
                                    const StopRequest& stop) const override;

 private:
  std::int64_t first_batch(std::int64_t step) const { return step * config_.grad_accum; }
  // Of the batches from `begin` to end - 1.
  std::int64_t targets(std::int64_t begin, std::int64_t end) const;

  Config config_;
  std::shared_ptr<const PairDataset> data_;
  std::string what_;
  PairEnds ends_;
  std::optional<PairTrainBatches> train_;
  std::optional<PairEvalBatches> eval_train_, eval_val_;
};

}  // namespace maki
