#include "data/io/utf8.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <utf8proc.h>
#include <utility>

namespace maki {
namespace {

// The first unit of non-empty text: a character or a maximal ill-formed part.
struct Unit {
  std::size_t size;  // in bytes
  bool character;    // whether it is a well-formed character
  bool incomplete;   // whether more bytes at the end of the text could complete it
};

Unit unit_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, true, false};
  const std::size_t size = lead >= 0xC2 && lead <= 0xDF   ? 2
                           : (lead & 0xF0) == 0xE0        ? 3
                           : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                          : 0;
  if (size == 0) return {1, false, false};
  // The range of the second byte excludes overlong forms, surrogates and numbers above U+10FFFF.
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < size; ++i) {
    if (i == text.size()) return {i, false, true};
    if (byte(i) < (i == 1 ? low : 0x80) || byte(i) > (i == 1 ? high : 0xBF)) return {i, false, false};
  }
  return {size, true, false};
}

// ASCII, of which most texts mainly consist, is validated eight bytes at a time.
constexpr std::size_t kAsciiBlockBytes = 8;
bool is_ascii_block(std::string_view text, std::size_t at) {
  if (at + kAsciiBlockBytes > text.size()) return false;
  std::uint64_t block = 0;
  std::memcpy(&block, text.data() + at, kAsciiBlockBytes);
  return (block & 0x8080808080808080) == 0;
}

// Moves characters from `bytes` to the end of `text` and replaces ill-formed parts. With `hold`, an incomplete
// character at the end stays in `bytes`.
void append_replaced(std::string& text, std::string_view& bytes, bool hold) {
  while (!bytes.empty()) {
    const Unit unit = unit_at(bytes);
    if (unit.incomplete && hold) return;
    text += unit.character ? bytes.substr(0, unit.size) : kReplacementCharacter;
    bytes.remove_prefix(unit.size);
  }
}

}  // namespace

std::optional<std::size_t> invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (is_ascii_block(text, at)) {
      at += kAsciiBlockBytes;
      continue;
    }
    const Unit unit = unit_at(text.substr(at, 4));
    if (!unit.character) return at;
    at += unit.size;
  }
  return std::nullopt;
}

std::size_t well_formed_size(std::string_view text) {
  const Unit unit = unit_at(text);
  return unit.character ? unit.size : 0;
}

std::size_t count_invalid_utf8(std::string_view text) {
  std::size_t count = 0;
  while (!text.empty()) {
    const Unit unit = unit_at(text);
    if (!unit.character) count += unit.size;
    text.remove_prefix(unit.size);
  }
  return count;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string replaced;
  append_replaced(replaced, text, false);
  return replaced;
}

char32_t next_code_point(std::string_view& text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t size = std::min<std::size_t>(lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4, text.size());
  char32_t code_point = size == 1 ? lead : lead & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) code_point = code_point << 6 | (static_cast<unsigned char>(text[i]) & 0x3F);
  text.remove_prefix(size);
  return code_point;
}

void append_utf8(std::string& text, char32_t code_point) {
  utf8proc_uint8_t bytes[4];
  const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

std::int64_t count_code_points(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return !is_continuation(c); });
}

std::size_t byte_offset(std::string_view text, std::int64_t n) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!is_continuation(text[at]) && n-- == 0) return at;
  }
  return text.size();
}

std::string describe_code_point(char32_t code_point) {
  const auto number = fmt::format("U+{:04X}", static_cast<std::uint32_t>(code_point));
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
  const bool visible = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_SO &&
                       category != UTF8PROC_CATEGORY_MN && category != UTF8PROC_CATEGORY_ME;
  if (!visible) return number;
  std::string text;
  append_utf8(text, code_point);
  return fmt::format("{} ({})", text, number);
}

std::int64_t display_width(std::string_view text) {
  std::int64_t width = 0;
  while (!text.empty()) width += utf8proc_charwidth(static_cast<utf8proc_int32_t>(next_code_point(text)));
  return width;
}

std::string Utf8Stream::push(std::string_view bytes) {
  pending_ += bytes;
  std::string_view left = pending_;
  std::string shown;
  append_replaced(shown, left, true);
  pending_ = std::string(left);
  return shown;
}

std::string Utf8Stream::finish() { return pending_.empty() ? "" : replace_invalid_utf8(std::exchange(pending_, {})); }

}  // namespace maki
