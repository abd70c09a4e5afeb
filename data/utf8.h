// UTF-8: validation, replacement, code points, display width, and streams that never break a character.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace maki {

/// Offset of the first byte that is not part of well-formed UTF-8 (Unicode 15, table 3-7: no overlong forms, no
/// surrogates, nothing past U+10FFFF); none when all of it is.
std::optional<std::size_t> invalid_utf8(std::string_view text);

/// Bytes of the character at the front of non-empty text; 0 where none is well-formed.
std::size_t well_formed_size(std::string_view text);
/// Bytes that are not part of well-formed UTF-8.
std::size_t count_invalid_utf8(std::string_view text);

/// Every maximal ill-formed part becomes one U+FFFD (Unicode 15, section 3.9; what web browsers do).
std::string replace_invalid_utf8(std::string_view text);

/// The code point at the front of well-formed, non-empty text, which is shortened by it.
char32_t next_code_point(std::string_view& text);
void append_utf8(std::string& text, char32_t code_point);

/// Whether a byte of well-formed text is none of the first bytes of a character.
inline bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }
std::int64_t count_code_points(std::string_view text);  ///< of well-formed text
/// Byte offset of code point n; the size of the text when it has no more than n.
std::size_t byte_offset(std::string_view text, std::int64_t n);

/// For messages: the character itself when it can be seen, and its number: "Ω (U+03A9)".
std::string describe_code_point(char32_t code_point);
/// Columns of a terminal.
std::int64_t display_width(std::string_view text);

/// Turns pieces of bytes into whole characters: an incomplete tail is held back until the rest comes.
class Utf8Stream {
 public:
  /// What can be shown now; ill-formed parts as U+FFFD.
  std::string push(std::string_view bytes);
  /// The end: what was held back, as U+FFFD.
  std::string finish();

 private:
  std::string pending_;
};

}  // namespace maki
