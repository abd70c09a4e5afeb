#include "data/io/shell_quote.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fmt/format.h>

#include "data/io/printable.h"

namespace maki {

std::string shell_quote(const std::string& path) {
  const std::string text = path.size() > 1 && path.starts_with('-') ? "./" + path : path;
  const auto plain = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || std::isalnum(byte) != 0 || std::strchr("_@%+=:,./-", c) != nullptr;
  };
  const bool is_printable = escape_unprintable(text) == text;
  if (is_printable && !text.empty() && std::ranges::all_of(text, plain)) return text;
  std::string quoted = "'";
  if (is_printable) {
    for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
  }
  for (const char c : text) quoted += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return fmt::format("${}'",
                     escape_unprintable(quoted));  // bash and zsh interpret escape_unprintable()'s escapes in $'…'
}

}  // namespace maki
