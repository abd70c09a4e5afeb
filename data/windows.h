// The order in which training reads its text: windows without replacement, a function of (seed, index) alone.
//
// n tokens hold N = max(1, ⌊n/T⌋ − 1) windows of T tokens and their targets an epoch. Sample i belongs to epoch e =
// ⌊i/N⌋ and starts at phase_e + T · π_e(i mod N): π_e is a permutation (a Feistel network over N, cycle-walking: Black
// and Rogaway 2002), phase_e < min(T, n − N·T) shifts the grid, so that windows do not always begin at the same places.
// No index array, no state: resuming costs nothing.
#pragma once

#include <cstdint>

namespace maki {

class Windows {
 public:
  /// Throws CorpusError unless tokens >= block_size + 1.
  Windows(std::int64_t tokens, std::int64_t block_size, std::uint64_t seed);

  std::int64_t per_epoch() const { return per_epoch_; }
  /// First token of sample i; the sample is tokens [start, start + T] with the targets one further.
  std::int64_t start(std::int64_t sample) const;
  /// How often the text has been read after so many samples.
  double epochs(std::int64_t samples) const { return static_cast<double>(samples) / static_cast<double>(per_epoch_); }

 private:
  std::int64_t tokens_, block_size_, per_epoch_;
  std::uint64_t seed_;
};

/// π_epoch(index): a permutation of [0, n) that is a function of (seed, epoch). n >= 1, index in [0, n).
std::int64_t feistel(std::int64_t index, std::int64_t n, std::uint64_t seed, std::int64_t epoch);

}  // namespace maki
