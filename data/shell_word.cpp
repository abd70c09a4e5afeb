#include "data/shell_word.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace maki {

std::string shell_word(const std::string& text) {
  const auto plain = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || std::isalnum(byte) != 0 || std::strchr("_@%+=:,./-", c) != nullptr;
  };
  if (!text.empty() && std::ranges::all_of(text, plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace maki
