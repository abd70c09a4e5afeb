// The characters with which GPT-2 writes bytes in its vocabulary files: the visible Latin-1 characters ! to ~, ¡ to ¬
// and ® to ÿ stand for themselves, and U+0100, U+0101, … for the other 68 bytes in ascending order, so that a space is
// Ġ and a newline is Ċ.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace maki {

/// The 256 bytes in ascending order of their characters: the order of GPT-2's first 256 ids.
const std::array<std::uint8_t, 256>& bytes_by_character();

/// One character per byte, as UTF-8.
std::string to_byte_characters(std::string_view bytes);
/// The bytes that the characters stand for; nullopt if one of them stands for no byte.
std::optional<std::string> from_byte_characters(std::string_view text);

}  // namespace maki
