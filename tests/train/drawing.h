// What tests of pictures read of them, and a small heat map.
#pragma once

#include <algorithm>
#include <limits>
#include <regex>
#include <string>
#include <vector>

#include "data/io/utf8.h"
#include "tests/catch.h"
#include "train/app/draw/heat_map.h"

namespace maki::tests {

inline constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  return lines;
}

inline std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t i = text.find(part); i != std::string::npos; i = text.find(part, i + 1)) ++n;
  return n;
}

// What stands between each occurrence of `begin` and the next `end`.
inline std::vector<std::string> parts_between(const std::string& text, const std::string& begin,
                                              const std::string& end) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; (at = text.find(begin, at)) != std::string::npos;) {
    at += begin.size();
    parts.push_back(text.substr(at, text.find(end, at) - at));
  }
  return parts;
}

// Requires well-formed XML of the kind that Svg writes: every element is closed in its order, attributes are quoted,
// and there is no bare & or control character.
inline void require_well_formed(const std::string& xml) {
  const std::regex attributes(R"re(( [a-zA-Z0-9:-]+="[^"<]*")*)re");
  std::vector<std::string> open;
  std::size_t i = xml.find("?>") + 2;
  int roots = 0;
  while ((i = xml.find('<', i)) != std::string::npos) {
    const std::size_t end = xml.find('>', i);
    REQUIRE(end != std::string::npos);
    std::string tag = xml.substr(i + 1, end - i - 1);
    i = end;
    if (tag.starts_with('/')) {
      REQUIRE_FALSE(open.empty());
      REQUIRE(open.back() == tag.substr(1));
      open.pop_back();
      continue;
    }
    const bool empty = tag.ends_with('/');
    if (empty) tag.pop_back();
    const std::string name = tag.substr(0, tag.find(' '));
    if (tag.size() < 5000) REQUIRE(std::regex_match(tag.substr(name.size()), attributes));
    if (open.empty()) ++roots;
    if (!empty) open.push_back(name);
  }
  REQUIRE(open.empty());
  REQUIRE(roots == 1);
  REQUIRE(occurrences(xml, "&") ==
          occurrences(xml, "&amp;") + occurrences(xml, "&lt;") + occurrences(xml, "&gt;") + occurrences(xml, "&quot;"));
  REQUIRE(std::ranges::all_of(xml, [](char c) { return c == '\n' || static_cast<unsigned char>(c) >= 0x20; }));
  REQUIRE_FALSE(invalid_utf8(xml));
}

inline HeatMap two_by_three() {
  return {.title = "map",
          .rows = 2,
          .columns = 3,
          .values = {0, 0.25, 1, 1, kNoNumber, kNoNumber},
          .row_axis = {"query", {"猫", "a"}},
          .column_axis = {"key", {"の", "b", "<end>"}}};
}

// A text of a picture: where its baseline begins, ends or has its middle.
struct PlacedText {
  double x = 0, y = 0, size = 0;
  std::string content;
};

inline std::vector<PlacedText> placed_texts(const std::string& xml) {
  const std::regex element("<text x=\"([0-9.-]+)\" y=\"([0-9.-]+)\" font-size=\"([0-9.]+)\"[^>]*>([^<]*)</text>");
  std::vector<PlacedText> texts;
  for (std::sregex_iterator at(xml.begin(), xml.end(), element), end; at != end; ++at)
    texts.push_back({std::stod((*at)[1]), std::stod((*at)[2]), std::stod((*at)[3]), (*at)[4]});
  return texts;
}

inline PlacedText placed_text(const std::string& xml, const std::string& content) {
  const std::vector<PlacedText> all = placed_texts(xml);
  const auto found = std::ranges::find(all, content, &PlacedText::content);
  INFO(content);
  REQUIRE(found != all.end());
  return *found;
}

// The frames around maps, legends and plots, in their order.
struct Framed {
  double x = 0, y = 0, right = 0, bottom = 0;
};

inline std::vector<Framed> frames_of(const std::string& xml) {
  const std::regex frame(
      "<rect x=\"([0-9.]+)\" y=\"([0-9.]+)\" width=\"([0-9.]+)\" height=\"([0-9.]+)\" fill=\"none\"");
  std::vector<Framed> frames;
  for (std::sregex_iterator at(xml.begin(), xml.end(), frame), end; at != end; ++at) {
    const double x = std::stod((*at)[1]), y = std::stod((*at)[2]);
    frames.push_back({x, y, x + std::stod((*at)[3]), y + std::stod((*at)[4])});
  }
  return frames;
}

// The picture itself: from 0 to its width and height.
inline Framed picture_of(const std::string& xml) {
  const std::regex box("viewBox=\"0 0 ([0-9.]+) ([0-9.]+)\"");
  std::smatch found;
  REQUIRE(std::regex_search(xml, found, box));
  return {0, 0, std::stod(found[1]), std::stod(found[2])};
}

inline constexpr double kPixelRounding = 0.011;  // of numbers that are written with two decimals
inline constexpr double kDescender = 0.25;  // below the baseline of letters such as q, of their size; no font has more

}  // namespace maki::tests
