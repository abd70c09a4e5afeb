// Encodings of text other than UTF-8: recognised by their bytes, and decoded by iconv(3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace maki {

/// What to do with bytes that are not well-formed.
enum class InvalidUtf8 : std::uint8_t { error, replace };

/// The encoding of text that is not UTF-8, by the name iconv has for it: UTF-16 and UTF-32 (by their byte-order mark,
/// or UTF-16LE … by their pattern of bytes), ISO-2022-JP, EUC-JP, SHIFT_JIS, CP932, ISO-8859-1, WINDOWS-1252. None for
/// UTF-8, for UTF-8 with a few damaged bytes, and for what fits no such encoding.
std::optional<std::string> recognise_encoding(std::string_view bytes);

/// Turns bytes of an encoding into UTF-8, piece by piece.
class Decoder {
 public:
  /// `name` is for messages. Throws Error for an encoding that iconv does not know.
  Decoder(const std::string& encoding, std::string name, InvalidUtf8 invalid);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Appends the text of `bytes`; an incomplete character at their end waits for the rest. Bytes that are none of the
  /// encoding become U+FFFD or throw CorpusError, which names the first.
  void push(std::string_view bytes, std::string& text);
  /// The end of the bytes.
  void finish(std::string& text);
  /// How many bytes became U+FFFD.
  std::size_t replaced() const { return replaced_; }
  std::size_t bytes() const { return offset_; }

 private:
  void invalid(std::string& text);

  std::string encoding_, name_;
  InvalidUtf8 policy_;
  void* iconv_;
  std::string pending_;  // of an incomplete character
  std::size_t offset_ = 0, replaced_ = 0;
};

}  // namespace maki
