// The order in which training reads its tokens if the model carries a state from one step to the next: every row
// continues where it stopped.
//
// The text is read as a ring, in which its first token follows its last one as one file follows another. The rows of
// all micro-batches of a step, R = grad_accum · batch_size, begin equally far apart, and each reads T = block_size
// tokens per step: row r of step s starts at token (first + ⌊r · n / R⌋ + s · T) mod n, where `first` is drawn from the
// seed. After n / (R · T) steps the rows have read the whole text once between them, and each continues with what
// the next one has read. So no token is left out or, in the long run, read more often than another, no row ever has to
// start again with an empty memory, and there is no index array and no state.
#pragma once

#include <cstdint>

namespace maki {

/// Thread safety: immutable; may be used by several threads at once.
class ContinuedOrder {
 public:
  /// Requires: all numbers are at least 1.
  ContinuedOrder(std::int64_t tokens, std::int64_t block_size, std::int64_t rows, std::uint64_t seed);

  /// The first token of a row in [0, rows), at a step >= 0.
  std::int64_t start(std::int64_t step, std::int64_t row) const;
  /// How many times the text has been read after this number of steps: steps · R · T / n.
  double epochs(std::int64_t steps) const;

 private:
  std::int64_t tokens_, block_size_, rows_, first_;
};

}  // namespace maki
