#include "autograd/core/philox.h"

#include <cmath>
#include <numbers>

namespace maki {
namespace {

std::array<std::uint32_t, 2> words(std::uint64_t x) {
  return {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(x >> 32)};
}

// FNV-1a, 64 bits: the same number for a name on every machine. Its weak mixing does not matter, because Philox mixes.
std::uint64_t fnv1a(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

// Three chained Philox blocks, with the seed as key, absorb (purpose, a), b and c. The 128 bits of the last block
// become the stream's key and the upper half of its counter (salt).
RandomStream::RandomStream(std::uint64_t seed, RandomPurpose purpose, std::uint64_t a, std::uint64_t b,
                           std::uint64_t c) {
  const std::array<std::uint32_t, 2> key = words(seed);
  std::array<std::uint32_t, 4> state = philox({static_cast<std::uint32_t>(purpose), 0, words(a)[0], words(a)[1]}, key);
  for (const std::uint64_t word : {b, c}) {
    state[0] ^= words(word)[0];
    state[1] ^= words(word)[1];
    state = philox(state, key);
  }
  key_ = {state[0], state[1]};
  salt_ = {state[2], state[3]};
}

RandomStream::RandomStream(std::uint64_t seed, RandomPurpose purpose, std::string_view name)
    : RandomStream(seed, purpose, fnv1a(name), name.size()) {}

std::uint64_t RandomStream::bits64(std::uint64_t index) const {
  const std::array<std::uint32_t, 4> words = block(index / 2);
  const std::size_t at = 2 * (index % 2);
  return words[at] | (std::uint64_t{words[at + 1]} << 32);
}

double RandomStream::uniform(std::uint64_t index) const { return static_cast<double>(bits64(index) >> 11) * 0x1p-53; }

double RandomStream::normal(std::uint64_t index) const {
  const double u =
      static_cast<double>((bits64(index & ~std::uint64_t{1}) >> 11) + 1) * 0x1p-53;  // (0, 1]: log is finite
  const double angle = 2 * std::numbers::pi * uniform(index | 1);
  return std::sqrt(-2 * std::log(u)) * (index % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

std::uint64_t RandomStream::below(std::uint64_t index, std::uint64_t bound) const {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits64(index)) * bound) >> 64);
}

}  // namespace maki
