// The order in which training reads its tokens: training windows (sequences) drawn without replacement, as a function
// of (seed, index) alone.
//
// An epoch over n tokens has N = max(1, ⌊n/T⌋ − 1) windows of T = block_size tokens. Sample i belongs to epoch e =
// ⌊i/N⌋ and starts at token phase_e + T · π_e(i mod N). π_e is a pseudorandom permutation of [0, N): a Feistel network
// with cycle walking (Black and Rogaway 2002). phase_e is drawn from [0, min(T, n − N·T)) and shifts the grid, so that
// windows begin at different tokens in different epochs; for this it has one window fewer than would fit (⌊n/T⌋), and
// an epoch leaves out up to 2T − 1 tokens at the two ends. If n >= 2T, the last n mod T tokens are targets in no epoch:
// less than one window of the text. There is no index array and no state, so resuming costs nothing.
#pragma once

#include <cstdint>

namespace maki {

/// Thread safety: immutable; may be used by several threads at once.
class SequenceOrder {
 public:
  /// Throws CorpusError unless block_size >= 1 and tokens >= block_size + 1.
  SequenceOrder(std::int64_t tokens, std::int64_t block_size, std::uint64_t seed);

  std::int64_t per_epoch() const { return per_epoch_; }  ///< N
  /// The first token of a sample >= 0. The inputs of the sample are the T tokens from start on, its targets the T
  /// tokens from start + 1 on.
  std::int64_t start(std::int64_t sample) const;
  /// How many epochs this number of samples is.
  double epochs(std::int64_t samples) const { return static_cast<double>(samples) / static_cast<double>(per_epoch_); }

 private:
  std::int64_t tokens_, block_size_, per_epoch_;
  std::uint64_t seed_;
};

/// π_epoch(index): a pseudorandom permutation of [0, n) that depends on (seed, epoch) alone. Throws Error unless index
/// is in [0, n).
std::int64_t feistel(std::int64_t index, std::int64_t n, std::uint64_t seed, std::int64_t epoch);

}  // namespace maki
