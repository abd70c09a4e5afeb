// Batches: ids [B, T] and targets [B, T], written into memory of the caller's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/windows.h"

namespace maki {

/// The target of a position that has none: cross-entropy ignores it.
inline constexpr std::int32_t kIgnoredTarget = -1;

/// Training batches: row r of micro-batch m of step s is sample (s · grad_accum + m) · batch_size + r of Windows.
class TrainBatches {
 public:
  /// The tokens must outlive the object.
  TrainBatches(std::span<const std::int32_t> tokens, std::int64_t batch_size, std::int64_t block_size,
               std::int64_t grad_accum, std::uint64_t seed);

  /// Fills both spans, batch_size · block_size each; returns the number of targets.
  std::int64_t fill(std::int64_t step, std::int64_t micro, std::span<std::int32_t> ids,
                    std::span<std::int32_t> targets) const;
  /// Targets of all micro-batches of any step.
  std::int64_t targets_per_step() const { return grad_accum_ * batch_size_ * block_size_; }
  /// How often the text has been read after so many steps.
  double epochs(std::int64_t steps) const { return windows_.epochs(steps * grad_accum_ * batch_size_); }

 private:
  std::span<const std::int32_t> tokens_;
  std::int64_t batch_size_, block_size_, grad_accum_;
  Windows windows_;
};

/// Every target of a text once, in order: windows of block_size, the last one short.
class EvalBatches {
 public:
  EvalBatches(std::span<const std::int32_t> tokens, std::int64_t batch_size, std::int64_t block_size);

  std::int64_t count() const { return count_; }
  /// Rows of a batch: batch_size, fewer in the last.
  std::int64_t rows(std::int64_t batch) const;
  /// Targets of the whole text.
  std::int64_t targets() const { return static_cast<std::int64_t>(tokens_.size()) - 1; }
  /// Fills both spans, rows(batch) · block_size each; returns the number of targets. Where the text ends before the
  /// last window does, ids are 0 and targets kIgnoredTarget.
  std::int64_t fill(std::int64_t batch, std::span<std::int32_t> ids, std::span<std::int32_t> targets) const;

 private:
  std::span<const std::int32_t> tokens_;
  std::int64_t batch_size_, block_size_, windows_, count_;
};

}  // namespace maki
