// Colours, SVG, and the words of drawings.
#include "tests/train/drawing.h"

#include <fmt/format.h>

#include "train/app/draw/positions_figure.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("a colour scale covers its range, by square roots or evenly, and ends are not exceeded") {
  const ColorScale even{.low = -1, .high = 3};
  REQUIRE(even.level(-1) == 0);
  REQUIRE(even.level(1) == 32);
  REQUIRE(even.level(3) == 63);
  REQUIRE(even.level(-9) == 0);
  REQUIRE(even.level(9) == 63);
  REQUIRE(even.ticks() == std::vector<double>{-1, 0, 1, 2, 3});
  REQUIRE(even.color(0) == "#ffffd9");
  REQUIRE(even.color(63) == "#081d58");
  const ColorScale weights = scale_of_weights({0.2, kNoNumber, 0.64, 0});
  REQUIRE(weights.low == 0);
  REQUIRE(weights.high == 0.64);
  REQUIRE(weights.level(0.16) == 32);
  REQUIRE(weights.value_at(0.5) == 0.16);
  REQUIRE(weights.share_of(0.16) == 0.5);
  const std::vector<double> ticks = weights.ticks();
  REQUIRE(ticks.front() == 0);
  REQUIRE(ticks.back() == 0.5);
  for (std::size_t i = 1; i < ticks.size(); ++i)
    REQUIRE(weights.share_of(ticks[i]) - weights.share_of(ticks[i - 1]) >= 0.1249);
  REQUIRE(ticks.size() >= 4);
  // Round numbers, also where the ends of the scale are not; a round end is one of them.
  REQUIRE(ColorScale{.low = -6.7, .high = 8.38}.ticks() == std::vector<double>{-5, 0, 5});
  REQUIRE(ColorScale{.low = 0.0031, .high = 0.0042}.ticks().size() == 6);
  REQUIRE(ColorScale{.low = 0, .high = 0.5, .square_root = true}.ticks().back() == 0.5);
  for (const bool square_root : {false, true})
    REQUIRE(ColorScale{.low = 0, .high = 4.5e-12, .square_root = square_root}.ticks().back() <= 4.5e-12);
  const ColorScale both = scale_of_weights({-0.5, 0.25});
  REQUIRE(both.low == -0.5);
  REQUIRE(both.high == 0.5);
  REQUIRE(both.color(both.level(-0.5)) == "#67001f");
  REQUIRE(both.color(both.level(0.5)) == "#053061");
  REQUIRE(scale_of_weights({0, 0}).high == 1);
  REQUIRE(scale_of_range({2, 5, 3}).low == 2);
  REQUIRE(scale_of_range({2, 5, 3}).high == 5);
  REQUIRE(scale_of_range({2, 2}).level(2) == 0);
}

TEST_CASE("svg escapes every text, and its elements are well-formed") {
  Svg svg(100, 50.5, "<title> & \"more\"", "line\nend \x1b[31m \xff \xef\xbf\xbf");
  svg.text(1, 2.25, "a<b>&c", {.size = 10, .anchor = TextStyle::Anchor::end, .upward = true});
  svg.begin_group("</g>", 0, 0, 2, 3);
  svg.path("M0 0h1v1h-1z", "#000000");
  svg.end_group();
  const std::string xml = svg.document();
  require_well_formed(xml);
  REQUIRE(occurrences(xml, "<title>&lt;title&gt; &amp; &quot;more&quot;</title>") == 1);
  REQUIRE(occurrences(xml, "<desc>line\\nend \\x1b[31m \\xff \uFFFD</desc>") == 1);
  REQUIRE(occurrences(xml, "viewBox=\"0 0 100 50.5\"") == 1);
  REQUIRE(occurrences(xml,
                      "<text x=\"1\" y=\"2.25\" font-size=\"10\" text-anchor=\"end\" transform=\"rotate(-90 1 2.25)\">"
                      "a&lt;b&gt;&amp;c</text>") == 1);
  REQUIRE(occurrences(xml, "<title>&lt;/g&gt;</title>") == 1);
}

TEST_CASE("svg draws each shape with its numbers and colour") {
  Svg svg(40, 30, "title", "");
  svg.rectangle(1, 2, 3, 4, "red");
  svg.frame(5, 6, 7, 8);
  svg.line(9, 10, 11, 12, "green");
  svg.circle(13, 14, 15, "blue");
  svg.path("M 1 2", "teal");
  svg.polyline("1,2 3,4", "gold");
  const std::string document = svg.document();
  require_well_formed(document);
  for (const char* const shape :
       {R"(<rect x="1" y="2" width="3" height="4" fill="red")", R"(<rect x="5" y="6" width="7" height="8" fill="none")",
        R"(<line x1="9" y1="10" x2="11" y2="12" stroke="green")", R"(<circle cx="13" cy="14" r="15" fill="blue")",
        R"(d="M 1 2")", R"("teal")", R"(points="1,2 3,4")", R"("gold")"}) {
    INFO(shape);
    REQUIRE(occurrences(document, shape) == 1);
  }
}

TEST_CASE("every language has all words of the drawings, and their formats take the same numbers") {
  const PositionFacts facts = position_facts(300, 20, 100);
  for (const std::string& language : maki::languages()) {
    const maki::Words& words = words_in(language);
    INFO(language);
    const std::string xml = positions_picture(facts, words), text = positions_text(facts, words);
    require_well_formed(xml);
    REQUIRE(occurrences(xml, " lang=\"" + language + "\"") == 1);
    for (const std::string& line : lines_of(text)) REQUIRE(display_width(line) <= 80);
    for (const char* const number : {"100", "20", "300"}) REQUIRE(occurrences(lines_of(text).front(), number) == 1);
    REQUIRE(occurrences(text, "{") == 0);
    const std::string run = fmt::format(fmt::runtime(words.step_of_run), "a/b", 7);
    REQUIRE((occurrences(run, "a/b") == 1 && occurrences(run, "7") == 1));
    const std::string described = fmt::format(fmt::runtime(words.description_of_weights), 2, 3, 4, 5);
    for (const char* const number : {"2", "3", "4", "5"}) REQUIRE(occurrences(described, number) == 1);
  }
  REQUIRE(occurrences(positions_picture(facts, words_in("ja")), "波長") > 0);
  REQUIRE_THROWS_WITH(words_in("jp"), ContainsSubstring("lang: must be one of en, ja; got jp"));
}
