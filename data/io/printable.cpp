#include "data/io/printable.h"

#include <cstdint>
#include <fmt/format.h>

#include "data/io/utf8.h"

namespace maki {
namespace {

std::string escaped_byte(char byte) { return fmt::format("\\x{:02x}", static_cast<unsigned char>(byte)); }

// Unicode's bidirectional formatting characters, its line and paragraph separators, and spaces without a width.
bool is_layout_control(char32_t c) {
  return c == 0x061C || c == 0x200B || c == 0x2060 || c == 0xFEFF || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

void append_printable(std::string& out, char32_t c) {
  if (c == '\n') {
    out += "\\n";
  } else if (c == '\r') {
    out += "\\r";
  } else if (c == '\t') {
    out += "\\t";
  } else if (c < 0x20 || c == 0x7F) {
    out += escaped_byte(static_cast<char>(c));
  } else if ((c >= 0x80 && c < 0xA0) || is_layout_control(c)) {
    out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c));
  } else {
    append_utf8(out, c);
  }
}

}  // namespace

std::string escape_unprintable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t valid = invalid_utf8(text).value_or(text.size());
    for (std::string_view part = text.substr(0, valid); !part.empty();) append_printable(out, next_code_point(part));
    text.remove_prefix(valid);
    if (text.empty()) break;
    out += escaped_byte(text.front());
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace maki
