#include "data/io/hash.h"

#include <algorithm>
#include <fmt/format.h>
#include <new>
#include <xxhash.h>

namespace maki {

namespace {

std::array<std::uint8_t, 16> canonical_bytes(XXH128_hash_t value) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, value);
  std::array<std::uint8_t, 16> hash;
  std::copy_n(canonical.digest, hash.size(), hash.begin());
  return hash;
}

XXH3_state_t* new_state() {
  XXH3_state_t* const state = XXH3_createState();
  if (state == nullptr) throw std::bad_alloc();
  return state;
}

XXH3_state_t* state_of(void* state) { return static_cast<XXH3_state_t*>(state); }

}  // namespace

std::array<std::uint8_t, 16> hash128(std::string_view bytes) {
  return canonical_bytes(XXH3_128bits(bytes.data(), bytes.size()));
}

Hash128::Hash128() : state_(new_state()) { XXH3_128bits_reset(state_of(state_)); }
Hash128::~Hash128() { XXH3_freeState(state_of(state_)); }
void Hash128::add(std::string_view bytes) { add(std::as_bytes(std::span(bytes))); }
void Hash128::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_of(state_), bytes.data(), bytes.size());
}
std::array<std::uint8_t, 16> Hash128::value() const { return canonical_bytes(XXH3_128bits_digest(state_of(state_))); }

Hash64::Hash64() : state_(new_state()) { XXH3_64bits_reset(state_of(state_)); }
Hash64::~Hash64() { XXH3_freeState(state_of(state_)); }
void Hash64::add(std::span<const std::byte> bytes) { XXH3_64bits_update(state_of(state_), bytes.data(), bytes.size()); }
std::uint64_t Hash64::value() const { return XXH3_64bits_digest(state_of(state_)); }

std::string to_hex(const std::array<std::uint8_t, 16>& hash) {
  std::string text;
  for (const std::uint8_t byte : hash) text += fmt::format("{:02x}", byte);
  return text;
}

std::array<std::uint8_t, 16> hash_of_hex(std::string_view text) {
  const auto digit = [&](std::size_t i) { return text[i] <= '9' ? text[i] - '0' : text[i] - 'a' + 10; };
  std::array<std::uint8_t, 16> hash{};
  for (std::size_t i = 0; i < hash.size(); ++i)
    hash[i] = static_cast<std::uint8_t>(digit(2 * i) << 4 | digit(2 * i + 1));
  return hash;
}

std::string hash128_hex(std::string_view bytes) { return to_hex(hash128(bytes)); }

bool is_hash(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::uint64_t hash64(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace maki
