// Strings of any bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

namespace maki::tests {

/// Up to `max_size` bytes, of which every value is as likely.
inline std::string random_bytes(std::mt19937_64& random, std::size_t max_size) {
  std::string text(random() % (max_size + 1), ' ');
  for (std::size_t at = 0; at < text.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t drawn = random();
    std::memcpy(text.data() + at, &drawn, std::min(sizeof drawn, text.size() - at));
  }
  return text;
}

}  // namespace maki::tests
