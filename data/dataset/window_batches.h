// Batches for training and evaluation: ids [B, T] and targets [B, T], with B = batch_size sequences of T = block_size
// tokens, written into the caller's memory. The target of a position is the token that follows it.
//
// If the tokens consist of several pieces (one per file), a sequence may continue from one piece into the next;
// otherwise files shorter than a sequence could never be learned from. But a token is never the target of a token of
// another piece: the last position of a piece has no target.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/dataset/continued_order.h"
#include "data/dataset/document_sequences.h"
#include "data/dataset/sequence_order.h"
#include "data/tokenizer/tokens.h"

namespace maki {

/// Marks a position that has no target. It is the default of CrossEntropy::ignored, so the loss ignores the position.
inline constexpr std::int32_t kIgnoredTarget = -1;

/// How the rows of a batch follow those of the batch before it. `shuffled`: they do not. `continued`: row r begins with
/// the token after the last one of row r, for models that carry a state from one batch to the next.
enum class RowOrder : std::uint8_t { shuffled, continued };

/// Training batches: row r of micro-batch m of step s is sample (s · grad_accum + m) · batch_size + r of SequenceOrder,
/// or row m · batch_size + r of step s of ContinuedOrder, so the contents are a function of (seed, s, m). With
/// continued rows, a window may continue from the last token of the text, which then has no target, to the first one.
///
/// With documents, the samples of an epoch are their N sequences, in an order that depends on (seed, epoch) alone:
/// sample i is sequence π_e(i mod N) of epoch e = ⌊i/N⌋ (feistel()). The rest of a row is padding as in EvalBatches.
///
/// Thread safety: immutable; may be used by several threads at once.
class TrainBatches {
 public:
  /// `grad_accum` is the number of micro-batches per step. Throws Error unless batch_size >= 1 and grad_accum >= 1, and
  /// CorpusError unless block_size >= 1, there are at least block_size + 1 tokens and at least one piece has two tokens
  /// or more.
  ///
  /// With `documents`, which must be those of the tokens with this block_size (Error) and no stride, rows are shuffled
  /// (Error), and any number of tokens is enough.
  ///
  /// Requires: the tokens outlive the object.
  TrainBatches(TokenSpan tokens, std::int64_t batch_size, std::int64_t block_size, std::int64_t grad_accum,
               std::uint64_t seed, RowOrder order = RowOrder::shuffled,
               std::shared_ptr<const DocumentSequences> documents = nullptr);

  /// Fills both spans, of batch_size · block_size elements each, and returns the number of targets among them. Throws
  /// Error for a negative step, for a micro-batch outside [0, grad_accum) and if a span has another size, and
  /// CorpusError for an id of a damaged token file (TokenSpan).
  std::int64_t fill(std::int64_t step, std::int64_t micro, std::span<std::int32_t> ids,
                    std::span<std::int32_t> targets) const;
  /// Tokens in the micro-batches of one step, with padding. All of them have targets, except the last tokens of pieces
  /// and padding.
  std::int64_t tokens_per_step() const { return sequences_per_step() * block_size_; }
  std::int64_t sequences_per_step() const { return grad_accum_ * batch_size_; }
  /// The tokens of a step without padding, and those of all steps before it.
  std::int64_t tokens_in_step(std::int64_t step) const { return documents_ ? targets(step) : tokens_per_step(); }
  std::int64_t tokens_before(std::int64_t step) const;
  /// Number of targets in all micro-batches of a step.
  std::int64_t targets(std::int64_t step) const;
  /// The position of the first token of a row. Only a continued row goes on from the last token to the first.
  std::int64_t start(std::int64_t step, std::int64_t micro, std::int64_t row) const;
  /// How many epochs this number of steps is; with continued rows, how many times the text has been read.
  double epochs(std::int64_t steps) const {
    if (continued_) return continued_->epochs(steps);
    const std::int64_t samples = steps * sequences_per_step();
    return windows_ ? windows_->epochs(samples)
                    : static_cast<double>(samples) / static_cast<double>(documents_->count());
  }

 private:
  std::int64_t sample(std::int64_t step, std::int64_t micro, std::int64_t row) const {
    return (step * grad_accum_ + micro) * batch_size_ + row;
  }
  DocumentSequences::Sequence document_sequence(std::int64_t sample) const;
  std::int64_t tokens_of(std::int64_t first, std::int64_t last) const;  // of the samples [first, last)

  TokenSpan tokens_;
  std::int64_t batch_size_, block_size_, grad_accum_;
  std::uint64_t seed_;
  // One of these.
  std::optional<SequenceOrder> windows_;
  std::optional<ContinuedOrder> continued_;
  std::shared_ptr<const DocumentSequences> documents_;
};

/// Evaluation batches: consecutive sequences that cover the text, so that every token except the first of each piece is
/// a target exactly once. The last sequence may be shorter than block_size and is padded.
///
/// Continued rows cut the sequences into stretches of count() sequences (at least 16, if there are as many), one per
/// row: batch i has the i-th of each. All batches have the same number of rows; a row that has ended is padding.
///
/// With a stride below block_size, sequences overlap: each begins `stride` tokens after the one before and predicts
/// only the tokens that no earlier one has predicted, so that all but the first have at least block_size − stride
/// tokens to predict them from.
///
/// With documents, the sequences are theirs, each padded at its end.
///
/// Thread safety: immutable; may be used by several threads at once.
class EvalBatches {
 public:
  /// A stride of 0 is block_size. `documents` must be those of the tokens with these sizes. Throws Error if a size is
  /// below 1, the stride is not in [0, block_size] or continued rows have one, and CorpusError if no piece has two
  /// tokens. Requires: the tokens outlive the object.
  EvalBatches(TokenSpan tokens, std::int64_t batch_size, std::int64_t block_size, RowOrder order = RowOrder::shuffled,
              std::int64_t stride = 0, std::shared_ptr<const DocumentSequences> documents = nullptr);

  std::int64_t count() const { return count_; }  ///< number of batches
  /// Sequences in a batch: batch_size, possibly fewer in the last one, or with continued rows in all of them.
  std::int64_t rows(std::int64_t batch) const;
  /// Number of targets in the whole text.
  std::int64_t targets() const { return targets_; }
  /// Fills both spans, of rows(batch) · block_size elements each, and returns the number of targets among them. The
  /// padding has id 0 and target kIgnoredTarget. Throws Error if the batch is not in [0, count()) or a span has another
  /// size, and CorpusError for an id of a damaged token file (TokenSpan).
  std::int64_t fill(std::int64_t batch, std::span<std::int32_t> ids, std::span<std::int32_t> targets) const;
  /// The position of the first token of a row; beyond the text for a row that is padding.
  std::int64_t start(std::int64_t batch, std::int64_t row) const { return sequence(batch, row).start; }

 private:
  DocumentSequences::Sequence sequence(std::int64_t batch, std::int64_t row) const;

  TokenSpan tokens_;
  std::int64_t batch_size_, block_size_, stride_, windows_, count_, targets_;
  RowOrder order_;
  std::shared_ptr<const DocumentSequences> documents_;
};

}  // namespace maki
