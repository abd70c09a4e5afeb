// Batches for training and evaluation: ids [B, T] and targets [B, T], with B = batch_size sequences of T = block_size
// tokens, written into the caller's memory. The target of a position is the token that follows it.
//
// If the tokens consist of several pieces (one per file), a sequence may continue from one piece into the next;
// otherwise files shorter than a sequence could never be learned from. But a token is never the target of a token of
// another piece: the last position of a piece has no target.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset/sequence_order.h"
#include "data/tokenizer/tokens.h"

namespace maki {

/// Marks a position that has no target. It is the default of CrossEntropy::ignored, so the loss ignores the position.
inline constexpr std::int32_t kIgnoredTarget = -1;

/// Training batches: row r of micro-batch m of step s is sample (s · grad_accum + m) · batch_size + r of SequenceOrder,
/// so the contents are a function of (seed, s, m).
///
/// Thread safety: immutable; may be used by several threads at once.
class TrainBatches {
 public:
  /// `grad_accum` is the number of micro-batches per step. Throws Error unless batch_size >= 1 and grad_accum >= 1, and
  /// CorpusError unless block_size >= 1, there are at least block_size + 1 tokens and at least one piece has two tokens
  /// or more.
  ///
  /// Requires: the tokens outlive the object.
  TrainBatches(TokenSpan tokens, std::int64_t batch_size, std::int64_t block_size, std::int64_t grad_accum,
               std::uint64_t seed);

  /// Fills both spans, of batch_size · block_size elements each, and returns the number of targets among them. Throws
  /// Error if a span has another size.
  std::int64_t fill(std::int64_t step, std::int64_t micro, std::span<std::int32_t> ids,
                    std::span<std::int32_t> targets) const;
  /// Tokens in the micro-batches of one step. All of them have targets, except the last tokens of pieces.
  std::int64_t tokens_per_step() const { return grad_accum_ * batch_size_ * block_size_; }
  /// Number of targets in all micro-batches of a step.
  std::int64_t targets(std::int64_t step) const;
  /// How many times the text has been read after this number of steps.
  double epochs(std::int64_t steps) const { return windows_.epochs(steps * grad_accum_ * batch_size_); }

 private:
  TokenSpan tokens_;
  std::int64_t batch_size_, block_size_, grad_accum_;
  SequenceOrder windows_;
};

/// Evaluation batches: consecutive sequences that cover the text, so that every token except the first of each piece is
/// a target exactly once. The last sequence may be shorter than block_size and is padded.
///
/// Thread safety: immutable; may be used by several threads at once.
class EvalBatches {
 public:
  /// Throws Error if a size is below 1, and CorpusError if no piece has two tokens. Requires: the tokens outlive the
  /// object.
  EvalBatches(TokenSpan tokens, std::int64_t batch_size, std::int64_t block_size);

  std::int64_t count() const { return count_; }  ///< number of batches
  /// Sequences in a batch: batch_size, possibly fewer in the last one.
  std::int64_t rows(std::int64_t batch) const;
  /// Number of targets in the whole text.
  std::int64_t targets() const { return targets_; }
  /// Fills both spans, of rows(batch) · block_size elements each, and returns the number of targets among them. The
  /// padding has id 0 and target kIgnoredTarget. Throws Error if the batch is not in [0, count()) or a span has another
  /// size.
  std::int64_t fill(std::int64_t batch, std::span<std::int32_t> ids, std::span<std::int32_t> targets) const;

 private:
  TokenSpan tokens_;
  std::int64_t batch_size_, block_size_, windows_, count_, targets_;
};

}  // namespace maki
