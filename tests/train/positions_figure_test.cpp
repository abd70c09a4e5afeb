// Sinusoidal positions as a picture and in a terminal.
#include "train/app/draw/positions_figure.h"

#include <cmath>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "tests/train/drawing.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("the picture of sinusoidal positions is well-formed for every size, and its numbers are right") {
  for (const auto& [length, width] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {2, 3}, {300, 20}}) {
    const PositionFacts facts = position_facts(length, width, 100);
    const std::string xml = positions_picture(facts, words_in("en"));
    require_well_formed(xml);
    REQUIRE(occurrences(xml, "nan") == 0);
    REQUIRE(occurrences(xml, "inf") == 0);
    for (std::size_t at = 0; (at = xml.find("<g transform=\"translate(", at)) != xml.npos; ++at) {
      const std::size_t y = xml.find(' ', xml.find('(', at)) + 1;
      REQUIRE(std::stod(xml.substr(y)) > 62);  // below title and subtitle
    }
    for (const std::string& line : lines_of(positions_text(facts, words_in("en")))) REQUIRE(display_width(line) <= 80);
  }
  const std::string odd = positions_text(position_facts(2, 3, 100), words_in("en")),
                    even = positions_text(position_facts(2, 4, 100), words_in("en"));
  REQUIRE(occurrences(odd, "  columns    0 and    1          6.28\n  column     2                 135.37\n") == 1);
  REQUIRE(occurrences(even, "  columns    2 and    3         62.83\n") == 1);
  const PositionFacts facts = position_facts(5, 4, 100);
  REQUIRE(std::abs(facts.encoding[3 * 4 + 2] - std::sin(0.3)) < 1e-15);
  REQUIRE(std::abs(facts.dot_products[3 * 5 + 1] - std::cos(2) - std::cos(0.2)) < 1e-14);
  REQUIRE(std::abs(facts.wavelengths[1] - 20 * std::acos(-1)) < 1e-12);
}

TEST_CASE("wavelengths are drawn on a logarithmic axis of whole powers of ten, with their pairs below them") {
  const PositionFacts facts = position_facts(30, 20, 100);
  const Words& words = words_in("en");
  const std::string xml = positions_picture(facts, words);
  const Framed plot = frames_of(xml).back();
  const std::regex point("<circle cx=\"([0-9.]+)\" cy=\"([0-9.]+)\"");
  std::vector<std::pair<double, double>> points;
  for (std::sregex_iterator at(xml.begin(), xml.end(), point), end; at != end; ++at)
    points.emplace_back(std::stod((*at)[1]), std::stod((*at)[2]));
  REQUIRE(points.size() == 10);
  std::string line = "points=\"";
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double across = static_cast<double>(i) / 9, up = std::log10(facts.wavelengths[i]) / 3;  // from 1 to 1000
    REQUIRE(std::abs(points[i].first - plot.x - across * (plot.right - plot.x)) < kPixelRounding);
    REQUIRE(std::abs(points[i].second - plot.bottom + up * (plot.bottom - plot.y)) < kPixelRounding);
    line += fmt::format("{:.2f},{:.2f} ", points[i].first, points[i].second);
  }
  REQUIRE(occurrences(xml, line) == 1);
  for (const auto& [power, up] : {std::pair("1", 0.0), {"10", 1 / 3.0}, {"100", 2 / 3.0}, {"1000", 1.0}}) {
    const double at = plot.bottom - up * (plot.bottom - plot.y);
    const std::vector<PlacedText> texts = placed_texts(xml);
    REQUIRE(std::ranges::any_of(texts, [&, number = std::string(power)](const PlacedText& text) {
      return text.content == number && text.x < plot.x && text.y > at && text.y - text.size < at;
    }));
  }
  const PlacedText pair = placed_text(xml, words.pair);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::vector<PlacedText> texts = placed_texts(xml);
    REQUIRE(std::ranges::any_of(texts, [&](const PlacedText& text) {
      return text.content == std::to_string(i) && std::abs(text.x - points[i].first) < kPixelRounding &&
             text.y - text.size > plot.bottom && text.y < pair.y - pair.size;
    }));
  }
  REQUIRE(std::abs(pair.x - (plot.x + plot.right) / 2) < kPixelRounding);
  REQUIRE(placed_text(xml, words.wavelength_of_pair).y < plot.y);
  REQUIRE(placed_text(xml, words.wavelength_axis).x < plot.x);
  const Framed picture = picture_of(xml);
  for (const PlacedText& text : placed_texts(xml)) {
    INFO(text.content << " at " << text.x << ", " << text.y);
    REQUIRE((text.x > 0 && text.x < picture.right));
    REQUIRE((text.y - text.size >= 0 && text.y + kDescender * text.size <= picture.bottom));
  }
}

TEST_CASE("positions in a terminal are two maps with their legends, and the wavelengths") {
  REQUIRE(positions_text(position_facts(3, 4, 100), words_in("en")) ==
          "Sinusoidal positions: base 100, width 4, 3 positions\n\n"
          "encoding: row i is the vector p_i\n"
          "  0\n"
          "0 ▒▒██▒▒██\n"
          "1 ██▓▓▒▒██\n"
          "2 ██░░▒▒██\n"
          ". below -0.6  ░ below -0.2  ▒ below 0.2  ▓ below 0.6  █ up to 1\n\n"
          "dot products p_i · p_j\n"
          "  0\n"
          "0 ██▓▓..\n"
          "1 ▓▓██▓▓\n"
          "2 ..▓▓██\n"
          ". below 0.85  ░ below 1.1  ▒ below 1.4  ▓ below 1.7  █ up to 2\n\n"
          "wavelengths, in positions\n"
          "  columns    0 and    1          6.28\n"
          "  columns    2 and    3         62.83\n");
}

TEST_CASE("the picture of positions has two squares with their legends beside each other, and wavelengths below") {
  const Words& words = words_in("en");
  const std::string xml = positions_picture(position_facts(30, 20, 100), words);
  // A map is framed, and its legend after it.
  const std::vector<Framed> frames = frames_of(xml);
  REQUIRE(frames.size() == 5);
  for (const std::size_t map : {0U, 2U}) {
    const Framed &cells = frames[map], &legend = frames[map + 1];
    REQUIRE(std::abs(cells.right - cells.x - 384) < kPixelRounding);
    REQUIRE(std::abs(cells.bottom - cells.y - 384) < kPixelRounding);
    REQUIRE(legend.x >= cells.right + 8);
    REQUIRE((legend.y == cells.y && legend.bottom == cells.y + 200));
  }
  REQUIRE(frames[2].y == frames[0].y);
  const std::vector<PlacedText> texts = placed_texts(xml);
  double numbers_end = 0, second_title = 0;
  for (const PlacedText& text : texts) {
    const double width = 0.6 * text.size * static_cast<double>(display_width(text.content));
    if (text.x > frames[1].right && text.x < frames[1].right + 8) numbers_end = std::max(numbers_end, text.x + width);
    if (text.content == words.position_i) second_title = text.x - text.size;
  }
  REQUIRE(numbers_end > frames[1].right);
  REQUIRE(second_title > numbers_end);
  const Framed plot = frames[4];
  const PlacedText wavelengths = placed_text(xml, words.wavelength_of_pair);
  REQUIRE(wavelengths.y - wavelengths.size > frames[0].bottom);
  REQUIRE(plot.right == frames[2].right);
  const Framed picture = picture_of(xml);
  REQUIRE((frames[3].right < picture.right && plot.bottom < picture.bottom));
}

TEST_CASE("a wide table of positions has narrow cells and no circles, and at most 16 of its wavelengths are listed") {
  const Words& words = words_in("en");
  const Framed cells = frames_of(positions_picture(position_facts(1, 2000, 100), words)).at(0);
  REQUIRE(std::abs(cells.right - cells.x - 2000 * 0.25) < kPixelRounding);  // a quarter of a pixel each
  const auto circles = [&](std::int64_t width) {
    return occurrences(positions_picture(position_facts(2, width, 100), words), "<circle");
  };
  REQUIRE(circles(128) == 64);
  REQUIRE(circles(130) == 0);
  for (const auto& [width, lines] :
       std::map<std::int64_t, std::size_t>{{2, 1}, {32, 16}, {34, 9}, {64, 16}, {66, 11}}) {
    INFO(width << " columns");
    REQUIRE(occurrences(positions_text(position_facts(2, width, 100), words), "\n  column") == lines);
  }
}
