// Batches of parallel text for a sequence-to-sequence model. Every sequence ends with an end token, whose id follows
// those of the tokenizer; the same token stands before the first target token, so that the model predicts
//
//   target  t₁ t₂ … tₙ end      from the source  s₁ s₂ … sₘ end      and the target so far  end t₁ t₂ … tₙ
//
// Pairs of similar length share a batch, so that little of it is padding.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "data/dataset/pairs.h"

namespace maki {

/// A batch as flat arrays, row by row. Padding consists of end tokens.
struct PairBatch {
  std::int64_t rows = 0, source_length = 0, target_length = 0;
  std::vector<std::int32_t> source, source_mask;  ///< [rows, source_length]; the mask is 0 at padding
  std::vector<std::int32_t> ids, targets;         ///< [rows, target_length]; padding has the target kIgnoredTarget
  std::int64_t target_count = 0;                  ///< targets that are not padding
  bool padded_source = false;                     ///< whether the mask has a 0
};

/// The ids of the end tokens.
struct PairEnds {
  std::int32_t source, target;
};

/// The batch that consists of the pairs with these indices. Requires: `rows` is not empty.
PairBatch make_pair_batch(const TokenPairs& pairs, std::span<const std::int32_t> rows, const PairEnds& ends);

/// Training batches. The pairs of an epoch are sorted by the length of target and source, pairs of equal lengths in an
/// order that depends on (seed, epoch), and cut into batches of batch_size pairs (the last one may be smaller); the
/// batches are read in an order that also depends on (seed, epoch). So a batch is a function of (seed, its number).
///
/// Thread safety: may be used by several threads at once.
class PairTrainBatches {
 public:
  /// Throws Error unless batch_size >= 1, and CorpusError unless there is a pair. Requires: the pairs outlive the
  /// object.
  PairTrainBatches(const TokenPairs& pairs, std::int64_t batch_size, std::uint64_t seed);

  /// The rows of batch i >= 0, counted from the first batch of the first epoch: the indices of its pairs.
  std::vector<std::int32_t> rows(std::int64_t i) const;
  std::int64_t per_epoch() const { return per_epoch_; }
  /// The sum of of(row) over the rows of the batches from `begin` to end - 1. If `begin` is 0, whole epochs are added
  /// up at once, because all have the same rows.
  std::int64_t sum(std::int64_t begin, std::int64_t end, const std::function<std::int64_t(std::int64_t)>& of) const;

 private:
  std::shared_ptr<const std::vector<std::int32_t>> order(std::int64_t epoch) const;

  const TokenPairs& pairs_;
  std::int64_t batch_size_, per_epoch_;
  std::uint64_t seed_;
  // The order of the epoch that was used last: sorting takes longer than a small step.
  mutable std::mutex mutex_;
  mutable std::int64_t ordered_epoch_ = -1;
  mutable std::shared_ptr<const std::vector<std::int32_t>> order_;
};

/// The pairs sorted by length, in batches of batch_size (the last one may be smaller); every pair once.
///
/// Thread safety: immutable; may be used by several threads at once.
class PairEvalBatches {
 public:
  /// Throws Error unless batch_size >= 1. Without pairs there are no batches. The pairs are not needed afterwards.
  PairEvalBatches(const TokenPairs& pairs, std::int64_t batch_size);
  std::int64_t count() const { return (static_cast<std::int64_t>(order_.size()) + batch_size_ - 1) / batch_size_; }
  /// The indices of the pairs of a batch. Requires: 0 <= i < count().
  std::vector<std::int32_t> rows(std::int64_t i) const;

 private:
  std::int64_t batch_size_;
  std::vector<std::int32_t> order_;
};

}  // namespace maki
