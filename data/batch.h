// Batches: ids [B, T] and targets [B, T], written into memory of the caller's.
//
// Where tokens consist of several pieces (one per file), a window may run on from one piece into the next: otherwise a
// file shorter than a window could never be learned from. But no token is the target of a token of another piece.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/tokens.h"
#include "data/windows.h"

namespace maki {

/// The target of a position that has none: cross-entropy ignores it.
inline constexpr std::int32_t kIgnoredTarget = -1;

/// Training batches: row r of micro-batch m of step s is sample (s · grad_accum + m) · batch_size + r of Windows.
class TrainBatches {
 public:
  /// The tokens must outlive the object.
  TrainBatches(TokenSpan tokens, std::int64_t batch_size, std::int64_t block_size, std::int64_t grad_accum,
               std::uint64_t seed);

  /// Fills both spans, batch_size · block_size each; returns the number of targets.
  std::int64_t fill(std::int64_t step, std::int64_t micro, std::span<std::int32_t> ids,
                    std::span<std::int32_t> targets) const;
  /// Tokens that all micro-batches of any step read. Each has a target, but for the last one of a piece.
  std::int64_t tokens_per_step() const { return grad_accum_ * batch_size_ * block_size_; }
  /// Targets of all micro-batches of a step.
  std::int64_t targets(std::int64_t step) const;
  /// How often the text has been read after so many steps.
  double epochs(std::int64_t steps) const { return windows_.epochs(steps * grad_accum_ * batch_size_); }

 private:
  TokenSpan tokens_;
  std::int64_t batch_size_, block_size_, grad_accum_;
  Windows windows_;
};

/// Every target of a text once, in order: windows of block_size, the last one short. The first token of a piece is no
/// target.
class EvalBatches {
 public:
  EvalBatches(TokenSpan tokens, std::int64_t batch_size, std::int64_t block_size);

  std::int64_t count() const { return count_; }
  /// Rows of a batch: batch_size, fewer in the last.
  std::int64_t rows(std::int64_t batch) const;
  /// Targets of the whole text.
  std::int64_t targets() const { return targets_; }
  /// Fills both spans, rows(batch) · block_size each; returns the number of targets. Where the text ends before the
  /// last window does, ids are 0 and targets kIgnoredTarget.
  std::int64_t fill(std::int64_t batch, std::span<std::int32_t> ids, std::span<std::int32_t> targets) const;

 private:
  TokenSpan tokens_;
  std::int64_t batch_size_, block_size_, windows_, count_, targets_;
};

}  // namespace maki
