// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as
// 1, 2, 3" (SC 2011). Every random bit is a pure function of (key, counter): there is no generator state to save, and
// numbers can be drawn in any order on any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace maki {

/// The Philox4x32-10 function: 128 random bits from a 128-bit counter and a 64-bit key.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

/// What a stream is used for. Streams of different purposes are independent. The numeric values enter every stream, so
/// changing one changes the results of existing runs.
enum class RandomPurpose : std::uint32_t {
  initialize = 1,  ///< initial values of parameters
  shuffle = 2,     ///< the order of training data, and the random data of benchmarks
  dropout = 3,
  sample = 4,   ///< tokens drawn in generation
  stories = 5,  ///< built-in texts
  gradcheck = 6,
  test = 7,       ///< tests and benchmarks
  mask = 8,       ///< the tokens that a masked language model must guess
  validation = 9  ///< which examples are held out for validation
};

/// An unbounded sequence of 32-bit words with random access, determined by (seed, purpose, a, b, c) alone. All
/// functions draw from the same words, so their results are independent only if a stream is read through one of them.
///
/// Thread safety: immutable and cheap to copy.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, RandomPurpose purpose, std::uint64_t a = 0, std::uint64_t b = 0,
               std::uint64_t c = 0);
  /// The stream of a name, such as that of a parameter: (a, b, c) are a hash of the name, its length and 0.
  RandomStream(std::uint64_t seed, RandomPurpose purpose, std::string_view name);

  /// The four words at indices 4·block … 4·block + 3: what kernels draw, one block at a time.
  std::array<std::uint32_t, 4> block(std::uint64_t block) const {
    return philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), salt_[0], salt_[1]},
                  key_);
  }
  /// The inputs that block() passes to philox(): the key, and the upper half of the counter. For SIMD kernels, which
  /// compute many blocks at once.
  std::array<std::uint32_t, 2> key() const { return key_; }
  std::array<std::uint32_t, 2> salt() const { return salt_; }
  /// Word `index` of the sequence.
  std::uint32_t bits(std::uint64_t index) const { return this->block(index / 4)[index % 4]; }
  /// Words 2·index (low half) and 2·index + 1.
  std::uint64_t bits64(std::uint64_t index) const;

  double uniform(std::uint64_t index) const;  ///< uniform in [0, 1), 53 random bits
  /// Standard normal (Box and Muller 1958). Numbers 2i and 2i + 1 are independent of each other, although one transform
  /// computes both of them from bits64(2i) and bits64(2i + 1).
  double normal(std::uint64_t index) const;
  /// An integer in [0, bound), computed from bits64(index); the probability of each is off by at most 2^-64. Requires:
  /// bound > 0.
  std::uint64_t below(std::uint64_t index, std::uint64_t bound) const;
  /// Whether both are the same sequence.
  bool operator==(const RandomStream&) const = default;

 private:
  std::array<std::uint32_t, 2> key_{}, salt_{};
};

}  // namespace maki
