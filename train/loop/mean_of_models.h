// Several trained models as one: the probability of each token is the mean of theirs. Models that differ only in their
// seeds make different mistakes, so that the mean predicts better than each of them (Hansen and Salamon 1990, "Neural
// Network Ensembles").
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/model.h"
#include "train/run/loaded_model.h"

namespace maki {

/// Predicts with the mean probabilities of models of the same tokens.
///
/// Thread safety: that of its models.
class MeanOfModels final : public Generator {
 public:
  /// The model of `first` becomes one of the models, and the shortest of their contexts that of its configuration; the
  /// rest of `first` must outlive the object. A model whose n-gram counts are those of `first` shares its prior. Throws
  /// Error if a model does not generate, has another task or other tokens than the first, or remembers what it has
  /// read before its window and the first does not, or the reverse.
  MeanOfModels(LoadedModel& first, std::vector<std::unique_ptr<LoadedModel>> others);

  /// The n-gram counts (CheckpointState::ngram_counts) to which Batch::other_priors of the batches belong: those of the
  /// models that differ from those of the first, each once.
  const std::vector<std::string>& other_counts() const { return other_counts_; }

  const char* kind() const override { return models_.front()->kind(); }
  /// A cross_entropy of the logarithms of the mean probabilities. Nothing of the models is recorded, and their products
  /// are those of generation.
  Tensor loss(const Batch& batch, const CrossEntropy& options, State* carried = nullptr) const override;
  std::unique_ptr<State> make_carried(std::int64_t batch) const override;
  double attention_flop(std::int64_t length) const override;
  std::int64_t activation_bytes(std::int64_t batch, std::int64_t length) const override;
  std::unique_ptr<State> start(std::int64_t batch, const Tensor& source = {},
                               const Tensor& source_mask = {}) const override;
  /// The logarithms of the mean probabilities.
  Tensor next_logits(const Tensor& ids, State& state) const override;
  bool same_bits_stepwise() const override;

 private:
  std::unique_ptr<Model> first_;
  std::vector<std::unique_ptr<LoadedModel>> others_;
  const Tensor& prior_of(std::size_t model, const Batch& batch) const;

  std::vector<const Generator*> models_;
  std::vector<std::string> other_counts_;
  std::vector<std::ptrdiff_t> counts_;  // of each model the index in other_counts_; -1: those of the first, or none
};

/// The logarithms of the means of probabilities, whose logarithms are given: tensors of equal shape [rows, V] → [rows,
/// V]. Computed in float64. Requires: there is a tensor.
Tensor log_of_mean(const std::vector<Tensor>& log_probabilities);

}  // namespace maki
