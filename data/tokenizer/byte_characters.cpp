#include "data/tokenizer/byte_characters.h"

#include <algorithm>

#include "data/io/utf8.h"

namespace maki {
namespace {

constexpr char32_t kFirstStandIn = 0x100;  // of GPT-2: the first character that is no byte

bool stands_for_itself(int byte) { return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174; }

struct Characters {
  std::array<char32_t, 256> of_byte{};
  std::array<std::string, 256> text_of_byte;
  std::array<std::int16_t, kFirstStandIn + 68> to_byte{};
  std::array<std::uint8_t, 256> by_character{};

  Characters() {
    to_byte.fill(-1);
    char32_t stand_in = kFirstStandIn;
    for (int byte = 0; byte < 256; ++byte) {
      const auto i = static_cast<std::size_t>(byte);
      of_byte[i] = stands_for_itself(byte) ? static_cast<char32_t>(byte) : stand_in++;
      append_utf8(text_of_byte[i], of_byte[i]);
      to_byte[of_byte[i]] = static_cast<std::int16_t>(byte);
      by_character[i] = static_cast<std::uint8_t>(byte);
    }
    std::ranges::sort(by_character, {}, [&](std::uint8_t byte) { return of_byte[byte]; });
  }
};

const Characters& characters() {
  static const Characters table;
  return table;
}

}  // namespace

const std::array<std::uint8_t, 256>& bytes_by_character() { return characters().by_character; }

std::string to_byte_characters(std::string_view bytes) {
  const Characters& table = characters();
  std::string text;
  for (const char byte : bytes) text += table.text_of_byte[static_cast<unsigned char>(byte)];
  return text;
}

std::optional<std::string> from_byte_characters(std::string_view text) {
  if (invalid_utf8(text)) return std::nullopt;
  const auto& to_byte = characters().to_byte;
  std::string bytes;
  while (!text.empty()) {
    const char32_t c = next_code_point(text);
    if (c >= to_byte.size() || to_byte[c] < 0) return std::nullopt;
    bytes += static_cast<char>(to_byte[c]);
  }
  return bytes;
}

}  // namespace maki
