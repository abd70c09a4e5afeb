// XXH3 (Collet), the hash that identifies corpora, tokenizers and checkpoints.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace maki {

/// XXH3-128 in its canonical, big-endian form, which is the same on every machine.
std::array<std::uint8_t, 16> hash128(std::string_view bytes);
/// hash128() as 32 hexadecimal digits.
std::string hash128_hex(std::string_view bytes);
/// Whether the text has the form of a result of hash128_hex(): 32 hexadecimal digits, lower case.
bool is_hash(std::string_view text);
/// hash128() of bytes that arrive in parts. Throws std::bad_alloc if there is no memory for its state, as Hash64 does.
class Hash128 {
 public:
  Hash128();
  ~Hash128();
  Hash128(const Hash128&) = delete;
  Hash128& operator=(const Hash128&) = delete;

  void add(std::string_view bytes);
  void add(std::span<const std::byte> bytes);
  std::array<std::uint8_t, 16> value() const;  ///< of all bytes so far

 private:
  void* state_;  // an XXH3_state_t
};
/// A hash as 32 hexadecimal digits, and back. Requires: is_hash(text).
std::string to_hex(const std::array<std::uint8_t, 16>& hash);
std::array<std::uint8_t, 16> hash_of_hex(std::string_view text);

/// XXH3-64 as an integer; a file that stores it must fix the byte order.
std::uint64_t hash64(std::string_view bytes);
/// hash64() of bytes that arrive in parts.
class Hash64 {
 public:
  Hash64();
  ~Hash64();
  Hash64(const Hash64&) = delete;
  Hash64& operator=(const Hash64&) = delete;

  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;  ///< of all bytes so far

 private:
  void* state_;  // an XXH3_state_t
};

}  // namespace maki
