// A bfloat16 number in memory: the upper half of the bits of a float32 number.
#pragma once

#include <bit>
#include <cstdint>

namespace maki {

struct BFloat16 {
  std::uint16_t bits = 0;
};

/// The number as float32, which is exact.
inline float to_float(BFloat16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }

}  // namespace maki
