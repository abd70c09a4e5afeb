// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as
// 1, 2, 3" (SC 2011). A bit is a pure function of (key, counter): nothing to save, nothing to lose, any order, any
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace maki {

/// One block: 128 random bits for a 128-bit counter and a 64-bit key.
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

/// What a stream is drawn for. Streams of different purposes never meet. The numbers are part of every run's identity.
enum class Purpose : std::uint32_t {
  initialize = 1,
  shuffle = 2,
  dropout = 3,
  sample = 4,
  stories = 5,
  gradcheck = 6,
  test = 7
};

/// An endless, randomly accessible sequence that is a function of (seed, purpose, a, b, c) alone: 32 bits at each
/// index. A small value: copy it freely, share it between threads.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, Purpose purpose, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0);
  /// A stream that belongs to a name (a parameter's initial values).
  RandomStream(std::uint64_t seed, Purpose purpose, std::string_view name);

  /// The four words at indices 4·block … 4·block + 3. Kernels fill rows block by block.
  std::array<std::uint32_t, 4> block(std::uint64_t block) const {
    return philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), salt_[0], salt_[1]},
                  key_);
  }
  /// What block() puts into philox(), for kernels that run many blocks at once.
  std::array<std::uint32_t, 2> key() const { return key_; }
  std::array<std::uint32_t, 2> salt() const { return salt_; }
  std::uint32_t bits(std::uint64_t index) const { return this->block(index / 4)[index % 4]; }
  std::uint64_t bits64(std::uint64_t index) const;

  double uniform(std::uint64_t index) const;  ///< [0, 1), 53 bits
  double normal(std::uint64_t index) const;   ///< mean 0, deviation 1 (Box and Muller 1958)
  /// An integer in [0, bound), unbiased to within bound/2^64. bound > 0.
  std::uint64_t below(std::uint64_t index, std::uint64_t bound) const;

 private:
  std::array<std::uint32_t, 2> key_{}, salt_{};
};

}  // namespace maki
