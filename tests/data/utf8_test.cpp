// UTF-8 against table 3-7 of the Unicode standard, on every short string and on strings of the bytes where its ranges
// end; streams against whole texts, however they are split.
#include "data/io/utf8.h"

#include <random>
#include <rapidcheck.h>
#include <set>
#include <vector>

#include "tests/catch.h"

using namespace maki;

namespace {

struct Range {
  unsigned char low, high;
};
// Table 3-7, "Well-Formed UTF-8 Byte Sequences".
const std::vector<std::vector<Range>> kWellFormed = {
    {{0x00, 0x7F}},
    {{0xC2, 0xDF}, {0x80, 0xBF}},
    {{0xE0, 0xE0}, {0xA0, 0xBF}, {0x80, 0xBF}},
    {{0xE1, 0xEC}, {0x80, 0xBF}, {0x80, 0xBF}},
    {{0xED, 0xED}, {0x80, 0x9F}, {0x80, 0xBF}},
    {{0xEE, 0xEF}, {0x80, 0xBF}, {0x80, 0xBF}},
    {{0xF0, 0xF0}, {0x90, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}},
    {{0xF1, 0xF3}, {0x80, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}},
    {{0xF4, 0xF4}, {0x80, 0x8F}, {0x80, 0xBF}, {0x80, 0xBF}},
};
const std::string kReplacement = "\xEF\xBF\xBD";

// The largest number of bytes from `at` on that agree with the beginning of a row, and whether that is the whole row.
std::pair<std::size_t, bool> longest_match(const std::string& text, std::size_t at) {
  std::pair<std::size_t, bool> best{0, false};
  for (const auto& row : kWellFormed) {
    std::size_t n = 0;
    while (n < row.size() && at + n < text.size()) {
      const auto byte = static_cast<unsigned char>(text[at + n]);
      if (byte < row[n].low || byte > row[n].high) break;
      ++n;
    }
    if (n > best.first) best = {n, n == row.size()};
  }
  return best;
}

struct ReferenceDecoder {
  std::optional<std::size_t> invalid;
  std::string replaced;
};

ReferenceDecoder reference(const std::string& text) {
  ReferenceDecoder result;
  for (std::size_t at = 0; at < text.size();) {
    const auto match = longest_match(text, at);
    if (match.second) {
      result.replaced += text.substr(at, match.first);
    } else {
      if (!result.invalid) result.invalid = at;
      result.replaced += kReplacement;
    }
    at += std::max<std::size_t>(1, match.first);
  }
  return result;
}

bool agrees(const std::string& text) {
  const ReferenceDecoder expected = reference(text);
  return invalid_utf8(text) == expected.invalid && replace_invalid_utf8(text) == expected.replaced;
}

// Written from the definition of the encoding form, independent of maki's encoder.
std::string encoded(std::uint32_t c) {
  const auto byte = [](std::uint32_t x) { return std::string(1, static_cast<char>(x)); };
  if (c < 0x80) return byte(c);
  if (c < 0x800) return byte(0xC0 | c >> 6) + byte(0x80 | (c & 63));
  if (c < 0x10000) return byte(0xE0 | c >> 12) + byte(0x80 | (c >> 6 & 63)) + byte(0x80 | (c & 63));
  return byte(0xF0 | c >> 18) + byte(0x80 | (c >> 12 & 63)) + byte(0x80 | (c >> 6 & 63)) + byte(0x80 | (c & 63));
}

// Bytes at the ends of the table's ranges: decoders differ on strings of these.
const std::string kEdges(
    "\x00\x41\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xE1\xEC\xED\xEE\xEF\xF0\xF1\xF3\xF4\xF5\xFF", 25);

std::string random_edges(std::mt19937_64& random, std::size_t max_size) {
  std::string text(random() % (max_size + 1), ' ');
  for (char& c : text) c = kEdges[random() % kEdges.size()];
  return text;
}

}  // namespace

TEST_CASE("validity and replacement agree with the table on every string of at most two bytes") {
  int seen = 0;
  bool good = agrees("");
  for (int a = 0; a < 256; ++a) {
    good = good && agrees(std::string(1, static_cast<char>(a)));
    for (int b = 0; b < 256; ++b, ++seen) good = good && agrees({static_cast<char>(a), static_cast<char>(b)});
  }
  REQUIRE(good);
  REQUIRE(seen == 65536);
}

TEST_CASE("validity and replacement agree with the table on strings of edge bytes") {
  std::mt19937_64 random(1);
  std::size_t valid = 0;
  for (const char a : kEdges) {
    for (const char b : kEdges) {
      for (const char c : kEdges) {
        for (const char d : kEdges) {
          const std::string text{a, b, c, d};
          if (!agrees(text)) FAIL("differs");
          valid += !invalid_utf8(text);
        }
      }
    }
  }
  REQUIRE(valid > 1000);
  for (int i = 0; i < 20000; ++i) REQUIRE(agrees(random_edges(random, 40)));
}

TEST_CASE("the examples of the Unicode standard, tables 3-8 to 3-11") {
  const auto bad = [](int n) {
    std::string text;
    for (int i = 0; i < n; ++i) text += kReplacement;
    return text;
  };
  REQUIRE(replace_invalid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41") == bad(8) + "A");
  REQUIRE(replace_invalid_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41") == bad(8) + "A");
  REQUIRE(replace_invalid_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42") == bad(5) + "A" + bad(2) + "B");
  REQUIRE(replace_invalid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41") == bad(4) + "A");
}

TEST_CASE("every code point is written and read as the encoding form defines") {
  std::size_t seen = 0;
  for (std::uint32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) {
      if (!invalid_utf8(encoded(c))) FAIL("a surrogate passes: " << c);
      continue;
    }
    const std::string expected = encoded(c);
    std::string text;
    append_utf8(text, static_cast<char32_t>(c));
    std::string_view rest = text;
    const bool good = text == expected && !invalid_utf8(text) && count_code_points(text) == 1 &&
                      next_code_point(rest) == c && rest.empty();
    if (!good) FAIL("code point " << c);
    ++seen;
  }
  REQUIRE(seen == 0x110000 - 2048);
  REQUIRE(invalid_utf8(encoded(0x110000)) == 0u);
}

TEST_CASE("counting characters and finding the n-th") {
  const std::string text = "aé猫😀b";
  REQUIRE(count_code_points(text) == 5);
  const std::vector<std::size_t> offsets = {0, 1, 3, 6, 10, 11, 11};
  for (std::size_t n = 0; n < offsets.size(); ++n)
    REQUIRE(byte_offset(text, static_cast<std::int64_t>(n)) == offsets[n]);
  REQUIRE(byte_offset("", 0) == 0);
}

TEST_CASE("a stream gives the same as the whole text, however it is split, in whole characters only") {
  const auto split = [](const std::string& text, std::mt19937_64& random) {
    Utf8Stream stream;
    std::string shown;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t n = random() % 4;  // sometimes an empty piece
      const std::string piece = stream.push(std::string_view(text).substr(at, n));
      if (invalid_utf8(piece)) return false;
      shown += piece;
      at = std::min(text.size(), at + n);
      // At most the beginning of one character is held back.
      const std::size_t held = replace_invalid_utf8(text.substr(0, at)).size() - shown.size();
      if (held != 0 && held != kReplacement.size()) return false;
    }
    return shown + stream.finish() == replace_invalid_utf8(text) && stream.finish().empty();
  };
  std::mt19937_64 random(2);
  int streams = 0;
  for (; streams < 100000; ++streams) {
    const std::string text = random_edges(random, 12);
    if (!split(text, random)) FAIL("stream " << streams);
  }
  REQUIRE(streams == 100000);
  REQUIRE(rc::check("any bytes", [&](const std::string& text, std::uint64_t seed) {
    std::mt19937_64 cuts(seed);
    RC_ASSERT(split(text, cuts));
  }));
}

TEST_CASE("a stream of single bytes shows each character with its last byte") {
  const std::string text = "aé猫😀👨‍👩‍👧b";
  Utf8Stream stream;
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    shown += stream.push(std::string_view(text).substr(i, 1));
    const std::string_view whole = std::string_view(text).substr(0, i + 1);
    REQUIRE(shown == whole.substr(0, invalid_utf8(whole).value_or(i + 1)));
  }
  REQUIRE(shown == text);
  REQUIRE(stream.finish().empty());
  REQUIRE(stream.push("\xE7\x8C").empty());
  REQUIRE(stream.finish() == kReplacement);
  REQUIRE(stream.push("\xAB") == kReplacement);  // finish() begins a new text
}

TEST_CASE("the width of a text in terminal columns") {
  REQUIRE(display_width("maki") == 4);
  REQUIRE(display_width("吾輩は猫") == 8);
  REQUIRE(display_width("é") == 1);
  REQUIRE(display_width("e\u0301") == 1);  // a combining accent takes no column
  REQUIRE(display_width("") == 0);
  REQUIRE(display_width("a\xFF\xE7") >= 1);  // ill-formed text must not loop
}

TEST_CASE("characters in messages: invisible characters are shown only by number") {
  REQUIRE(describe_code_point(U'Ω') == "Ω (U+03A9)");
  REQUIRE(describe_code_point(U'😀') == "😀 (U+1F600)");
  for (const char32_t c : {U'\n', U' ', U'\0', char32_t{0x200D}, char32_t{0xFEFF}, char32_t{0x301}, char32_t{0x7F}}) {
    const std::string text = describe_code_point(c);
    INFO(text);
    REQUIRE(text.starts_with("U+"));
    REQUIRE(text.find('(') == std::string::npos);
  }
}
