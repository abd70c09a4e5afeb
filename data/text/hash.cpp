#include "data/text/hash.h"

#include <algorithm>
#include <fmt/format.h>
#include <xxhash.h>

namespace maki {

std::array<std::uint8_t, 16> hash128(std::string_view bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  std::array<std::uint8_t, 16> hash;
  std::copy_n(canonical.digest, hash.size(), hash.begin());
  return hash;
}

std::string hash128_hex(std::string_view bytes) {
  std::string text;
  for (const std::uint8_t byte : hash128(bytes)) text += fmt::format("{:02x}", byte);
  return text;
}

bool is_hash(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::uint64_t hash64(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace maki
