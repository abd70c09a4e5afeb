// UTF-8: validation, replacement of invalid bytes, code points, display width, and decoding of streams.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace maki {

/// Offset of the first byte that is not part of well-formed UTF-8 (Unicode 15, table 3-7: no overlong forms, no
/// surrogates, nothing above U+10FFFF); nullopt if there is none.
std::optional<std::size_t> invalid_utf8(std::string_view text);

/// Number of bytes of the first character of the text; 0 if it is not well-formed. Requires: the text is not empty.
std::size_t well_formed_size(std::string_view text);
/// Number of bytes that are not part of well-formed UTF-8.
std::size_t count_invalid_utf8(std::string_view text);

/// U+FFFD, which stands for what is ill-formed.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

/// Replaces every maximal ill-formed part with one U+FFFD (Unicode 15, section 3.9), as web browsers do.
std::string replace_invalid_utf8(std::string_view text);

/// U+FEFF, which programs of Windows write at the beginning of a text.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
/// The text behind the byte-order mark that it may begin with.
inline std::string_view without_byte_order_mark(std::string_view text) {
  return text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}

/// Returns the first code point and removes it from the front of the text. Requires: the text is well-formed and not
/// empty.
char32_t next_code_point(std::string_view& text);
/// Appends a code point as UTF-8. Requires: it is one that well-formed UTF-8 can contain.
void append_utf8(std::string& text, char32_t code_point);

/// Whether a byte of well-formed text is a continuation byte, that is, not the first byte of a character.
inline bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }
std::int64_t count_code_points(std::string_view text);  ///< of well-formed text
/// Byte offset of code point n >= 0, counted from 0, of well-formed text; the size of the text if it has at most n.
std::size_t byte_offset(std::string_view text, std::int64_t n);

/// Describes a character for a message: like "Ω (U+03A9)", or only "U+200D" if it is invisible, not assigned, or a mark
/// that would be drawn over the character before it.
std::string describe_code_point(char32_t code_point);
/// Number of terminal columns that well-formed text occupies.
std::int64_t display_width(std::string_view text);

/// Turns a stream of bytes into text in whole characters: an incomplete character at the end of one part is held until
/// the next.
class Utf8Stream {
 public:
  /// Adds bytes and returns the text that is complete now, with ill-formed parts replaced by U+FFFD.
  std::string push(std::string_view bytes);
  /// Ends the stream. Returns U+FFFD if an incomplete character was held, else an empty string.
  std::string finish();

 private:
  std::string pending_;
};

}  // namespace maki
