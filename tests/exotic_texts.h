// Unusual texts, which are read byte for byte, and files that are not text, which are refused.
#pragma once

#include <string>
#include <vector>

#include "data/io/utf8.h"

namespace maki::tests {

struct ExoticText {
  std::string name, bytes;
};
/// All have at least eight characters.
inline std::vector<ExoticText> exotic_texts() {
  const auto times = [](int n, const std::string& piece) {
    std::string text;
    for (int i = 0; i < n; ++i) text += piece;
    return text;
  };
  std::string distinct;
  for (char32_t c = 0x10000; c < 0x20000; ++c) append_utf8(distinct, c);
  return {{"one character repeated", std::string(20, 'a')},
          {"no newline", "the quick brown fox"},
          {"only newlines", std::string(20, '\n')},
          {"CRLF", times(5, "line\r\n")},
          {"a UTF-8 byte-order mark stays", "\uFEFFtext with a mark"},
          {"NUL bytes", std::string("a\0b\0\0c a\0b\0\0c", 14)},
          {"emoji and joiners", times(3, "👨‍👩‍👧 😀🇯🇵")},
          {"combining characters stay apart", times(5, "e\u0301é")},
          {"Japanese", "吾輩は猫である。名前はまだ無い。"},
          {"65,536 characters, all different", distinct},
          {"a line of a megabyte", std::string(1 << 20, 'x')},
          {"the last code point there is", times(8, "\U0010FFFF")},
          {"noncharacters are characters too", times(8, "\uFFFE\uFFFF")}};
}

struct NoText {
  std::string bytes;
  std::vector<std::string> words;  ///< of the error, besides the path
};
inline std::vector<NoText> files_without_text() {
  return {{"", {"empty"}},
          {std::string("\xFF\xFEt\0e\0", 6), {"UTF-16", "iconv"}},
          {"\xFE\xFF", {"UTF-16", "iconv"}},
          {"ab\xFF", {"UTF-8", "byte 2 "}},
          {"caf\xE9 in Latin-1", {"byte 3 "}},
          {"cut off: \xE7\x8C", {"byte 9 "}},
          {"overlong \xC0\xAF", {"byte 9 "}},
          {"surrogate \xED\xA0\x80", {"byte 10 "}},
          {std::string(1 << 20, 'x') + "\x80", {"byte 1048576 "}}};
}

}  // namespace maki::tests
