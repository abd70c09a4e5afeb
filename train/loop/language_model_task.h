// Next-token prediction on a text: the task of decoder-only language models.
#pragma once

#include <optional>

#include "data/dataset/dataset.h"
#include "data/dataset/window_batches.h"
#include "train/loop/task.h"
#include "train/run/config/config.h"
#include "train/run/counted_prior.h"

namespace maki {

/// What `maki eval` reports about a text, besides the loss.
struct EvalText {
  bool own = false;  ///< the validation part of the run's own text, not the whole of another
  std::int64_t characters = 0, bytes = 0;
  /// What was done with characters that the vocabulary lacks: "error", "skip", "replace".
  std::string unknown_policy = {};
  std::int64_t unknown = 0;                          ///< how many there were
  std::string unknown_note = {};                     ///< a sentence about them, if there were any
  std::optional<double> entropy_per_character = {};  ///< nats, where it is known
  std::int64_t stride = 0;                     ///< of the windows of the validation text (EvalBatches); 0: block_size
  std::string ngram_counts = {};               ///< CheckpointState::ngram_counts of the model
  std::vector<std::string> other_counts = {};  ///< of further models, for Batch::other_priors
};

class LanguageModelTask final : public Task {
 public:
  /// Batches of config.batch_size sequences of config.block_size tokens; their rows are continued from one batch to the
  /// next if the model carries a state (RowOrder), and do not cross documents with config.respect_documents
  /// (DocumentSequences). Either part of the dataset may be empty, in which case no batch of it may be requested. With
  /// config.ngram_prior, the n-grams of the training text are counted here. Requires: the dataset outlives the task.
  LanguageModelTask(const Config& config, const Dataset& dataset);
  /// Batches of a dataset that the task shares with others. `text` describes the validation text to measure(); if it
  /// has n-gram counts, they are used instead of counting.
  LanguageModelTask(const Config& config, std::shared_ptr<const Dataset> dataset, EvalText text = {});
  /// The data and counts of another task, in the order that the seed of `config` gives. Requires: `config` differs from
  /// that of the other task in nothing else that decides how the text is read.
  LanguageModelTask(const Config& config, const LanguageModelTask& other);

  const Dataset& dataset() const { return *dataset_; }
  const EvalText& text() const { return text_; }

  const LanguageModelTask* as_language_model() const override { return this; }
  std::unique_ptr<Model> make_model(const Scope& scope) const override;
  VocabSizes vocab_sizes() const override { return dataset_->tokenizer->vocab_size(); }
  void fill(std::int64_t step, std::int64_t micro, Batch& batch) const override;
  std::int64_t targets(std::int64_t step) const override { return train_.value().targets(step); }
  std::int64_t tokens_in_step(std::int64_t step) const override { return train_.value().tokens_in_step(step); }
  std::int64_t tokens_before(std::int64_t step) const override { return train_.value().tokens_before(step); }
  /// Where the rows of a micro-batch begin in the training text, whose first token follows its last one.
  std::vector<std::int64_t> window_starts(std::int64_t step, std::int64_t micro) const;
  double epochs(std::int64_t steps) const override { return train_.value().epochs(steps); }
  std::int64_t eval_batches(Part part) const override;
  void fill_eval(Part part, std::int64_t i, Batch& batch) const override;
  CheckpointState data_state() const override;
  std::string describe_data() const override;
  std::string describe_step() const override;
  std::optional<CountingReport> counting(const StopRequest& stop) const override;
  std::vector<ReportLine> measure(const Model& model, const SampledLoss& loss, const MeasureOptions& options,
                                  const StopRequest& stop) const override;
  std::optional<double> best_possible_loss() const override { return dataset_->best_possible_loss; }
  std::optional<std::string> sample(const Model& model, std::uint64_t seed, std::int64_t step,
                                    const StopRequest& stop) const override;

 private:
  void order_windows(RowOrder order);
  std::int64_t eval_width(Part part) const;
  void count_ngrams();
  void set_priors(Batch& batch, TokenSpan text, std::span<const std::int64_t> starts, bool held_out) const;

  Config config_;
  std::shared_ptr<const Dataset> dataset_;
  EvalText text_;
  std::shared_ptr<const DocumentSequences> documents_;  // of the training text, if config.respect_documents
  std::optional<TrainBatches> train_;
  std::optional<EvalBatches> eval_train_, eval_val_;
  // With config.ngram_prior: the counts of the model that is evaluated, or else of the training text.
  std::shared_ptr<const CountedPrior> prior_;
  std::optional<HeldOutCounts> held_out_;
  std::vector<std::shared_ptr<const CountedPrior>> other_priors_;
  double counted_share_ = 0;  // of the training text
};

}  // namespace maki
