// Text encodings other than UTF-8: recognising them by their bytes, and decoding them with iconv(3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <iconv.h>
#include <optional>
#include <string>
#include <string_view>

namespace maki {

/// What to do with bytes that are invalid in their encoding: throw an error or replace them with U+FFFD.
enum class InvalidUtf8 : std::uint8_t { error, replace };

/// Guesses the encoding of text that is not UTF-8, by its name in iconv: UTF-16 or UTF-32 (if there is a byte-order
/// mark, which counts only where the bytes are the beginning of their text), UTF-16LE, UTF-16BE, UTF-32LE or UTF-32BE
/// (by the pattern of bytes), ISO-2022-JP, EUC-JP, SHIFT_JIS, CP932, ISO-8859-1 or WINDOWS-1252. Returns nullopt for
/// UTF-8, for UTF-8 in which fewer than half of the bytes above 127 are damaged, and if no encoding fits. Looks at the
/// first MiB at most. Bytes of ISO-2022-JP, and of UTF-16 and UTF-32 with ASCII alone, are well-formed UTF-8 as well
/// and are recognised nevertheless.
std::optional<std::string> detect_encoding(std::string_view bytes, bool is_beginning = true);

/// The number of bytes of an ASCII letter in an encoding, of which all characters are multiples: 2 in UTF-16 and UCS-2,
/// 4 in UTF-32 and UCS-4, and 1 in others, as well as in those that iconv does not know.
std::size_t unit_bytes(const std::string& encoding);

/// Converts text from another encoding to UTF-8, in parts of any size.
class Decoder {
 public:
  /// `name` is the name of the source, for error messages. Throws Error if iconv does not know the encoding.
  Decoder(const std::string& encoding, std::string name, InvalidUtf8 invalid);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Decodes `bytes` and appends the result, well-formed UTF-8, to `text`. An incomplete character at their end is held
  /// until the next call. Each invalid unit (unit_bytes()) becomes U+FFFD or, with InvalidUtf8::error, throws
  /// CorpusError with its offset.
  void push(std::string_view bytes, std::string& text);
  /// Must be called after the last push(). A character that is still incomplete is then treated as invalid: each of its
  /// units becomes U+FFFD, or CorpusError is thrown.
  void finish(std::string& text);
  /// Number of bytes that became U+FFFD.
  std::size_t replaced() const { return replaced_; }
  /// Number of bytes decoded so far.
  std::size_t bytes() const { return offset_; }

 private:
  void invalid(std::size_t at, std::size_t size, std::string& text);
  void append(std::string_view decoded, std::string& text);

  std::string encoding_, name_;
  InvalidUtf8 policy_;
  std::size_t unit_;  // unit_bytes()
  iconv_t iconv_;
  std::string pending_;  // bytes of an incomplete character
  std::size_t offset_ = 0, replaced_ = 0;
};

}  // namespace maki
