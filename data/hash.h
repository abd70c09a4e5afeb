// XXH3-128 (Collet): what a corpus, a tokenizer or a checkpoint is known by.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace maki {

/// Of all bytes, canonical (big-endian), so that it is the same on every machine.
std::array<std::uint8_t, 16> hash128(std::string_view bytes);
/// The same as 32 hexadecimal digits.
std::string hash_hex(std::string_view bytes);
std::uint64_t hash64(std::string_view bytes);  ///< XXH3-64

}  // namespace maki
