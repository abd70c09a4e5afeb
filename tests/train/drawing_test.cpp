// Pictures: colours, SVG, heat maps in SVG and in a terminal.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <regex>
#include <vector>

#include "data/io/utf8.h"
#include "tests/catch.h"
#include "tests/train/small_loaded.h"
#include "train/app/draw/attention_figure.h"
#include "train/app/draw/heat_map_grid.h"
#include "train/app/draw/positions_figure.h"

using namespace maki;

namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  return lines;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t i = text.find(part); i != std::string::npos; i = text.find(part, i + 1)) ++n;
  return n;
}

// Requires well-formed XML of the kind that Svg writes: every element is closed in its order, attributes are quoted,
// and there is no bare & or control character.
void require_well_formed(const std::string& xml) {
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
  REQUIRE(count(xml, "&") == count(xml, "&amp;") + count(xml, "&lt;") + count(xml, "&gt;") + count(xml, "&quot;"));
  REQUIRE(std::ranges::all_of(xml, [](char c) { return c == '\n' || static_cast<unsigned char>(c) >= 0x20; }));
  REQUIRE_FALSE(invalid_utf8(xml));
}

HeatMap two_by_three() {
  return {.title = "map",
          .rows = 2,
          .columns = 3,
          .values = {0, 0.25, 1, 1, kNoNumber, kNoNumber},
          .row_axis = {"query", {"猫", "a"}},
          .column_axis = {"key", {"の", "b", "<end>"}}};
}

// Two in the first row.
HeatMapGrid grid_of_three() {
  return {.title = "t",
          .source = "a/b",
          .subtitle = "s",
          .description = "d",
          .scale_title = "weight",
          .columns = 2,
          .maps = std::vector<HeatMap>(3, two_by_three()),
          .scale = {},
          .words = &words_in("en")};
}

// A text of a picture: where its baseline begins, ends or has its middle.
struct PlacedText {
  double x = 0, y = 0, size = 0;
  std::string content;
};

std::vector<PlacedText> placed_texts(const std::string& xml) {
  const std::regex element("<text x=\"([0-9.-]+)\" y=\"([0-9.-]+)\" font-size=\"([0-9.]+)\"[^>]*>([^<]*)</text>");
  std::vector<PlacedText> texts;
  for (std::sregex_iterator at(xml.begin(), xml.end(), element), end; at != end; ++at)
    texts.push_back({std::stod((*at)[1]), std::stod((*at)[2]), std::stod((*at)[3]), (*at)[4]});
  return texts;
}

PlacedText placed_text(const std::string& xml, const std::string& content) {
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

std::vector<Framed> frames_of(const std::string& xml) {
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
Framed picture_of(const std::string& xml) {
  const std::regex box("viewBox=\"0 0 ([0-9.]+) ([0-9.]+)\"");
  std::smatch found;
  REQUIRE(std::regex_search(xml, found, box));
  return {0, 0, std::stod(found[1]), std::stod(found[2])};
}

constexpr double kPixelRounding = 0.011;  // of numbers that are written with two decimals
constexpr double kDescender = 0.25;       // below the baseline of letters such as q, of their size; no font has more

}  // namespace

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
  REQUIRE(count(xml, "<title>&lt;title&gt; &amp; &quot;more&quot;</title>") == 1);
  REQUIRE(count(xml, "<desc>line\\nend \\x1b[31m \\xff \uFFFD</desc>") == 1);
  REQUIRE(count(xml, "viewBox=\"0 0 100 50.5\"") == 1);
  REQUIRE(count(xml,
                "<text x=\"1\" y=\"2.25\" font-size=\"10\" text-anchor=\"end\" transform=\"rotate(-90 1 2.25)\">"
                "a&lt;b&gt;&amp;c</text>") == 1);
  REQUIRE(count(xml, "<title>&lt;/g&gt;</title>") == 1);
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
    REQUIRE(count(document, shape) == 1);
  }
}

TEST_CASE("a token's label shows spaces, escapes control characters, and is cut at a number of columns") {
  REQUIRE(token_label(" the") == "␣the");
  REQUIRE(token_label("\n") == "\\n");
  REQUIRE(token_label("\u3000猫") == "␣猫");
  REQUIRE(token_label("\xe3") == "\\xe3");
  REQUIRE(token_label("abcdef", 6) == "abcdef");
  REQUIRE(token_label("abcdefg", 6) == "abcde…");
  REQUIRE(token_label("吾輩は猫である", 6) == "吾輩…");
}

TEST_CASE("the numbers of an axis are 1, 2 or 5 times a power of ten apart, and at most ten") {
  for (const auto& [length, distance] : std::map<std::int64_t, std::int64_t>{
           {1, 1}, {10, 1}, {11, 2}, {20, 2}, {21, 5}, {64, 10}, {128, 20}, {512, 100}, {1024, 200}})
    REQUIRE(tick_distance(length) == distance);
}

TEST_CASE("a heat map in SVG has a cell for each number, its labels and a legend") {
  HeatMapGrid grid = grid_of_three();
  grid.scale.square_root = true;
  const std::string xml = grid_picture(grid);
  require_well_formed(xml);
  // Row by row: 0 | 0.25 | 1, and 1 | nothing.
  REQUIRE(count(xml, "<path fill=\"#ffffd9\" d=\"M0 0h1v1h-1z\"/>") == 3);
  REQUIRE(count(xml, "<path fill=\"#081d58\" d=\"M2 0h1v1h-1zM0 1h1v1h-1z\"/>") == 3);
  REQUIRE(count(xml, "<path fill=\"#eeeeee\" d=\"M1 1h2v1h-2z\"/>") == 3);
  REQUIRE(count(xml, "d=\"M1 0h1v1h-1z\"") == 3);
  REQUIRE(count(xml, ">猫</text>") == 3);
  REQUIRE(count(xml, ">&lt;end&gt;</text>") == 3);
  REQUIRE(count(xml, ">query</text>") == 3);
  REQUIRE(count(xml, ">weight</text>") == 1);
  // In columns of 18 pixels, only <end> is turned.
  Svg svg(200, 200, "t", "d");
  draw_heat_map(svg, two_by_three(), {}, {.x = 80, .y = 80, .cell = 18});
  const std::regex upward(R"re(rotate\(-90[^>]*>&lt;end&gt;)re"), upright(R"re(rotate\(-90[^>]*>(の|b)<)re");
  REQUIRE(std::regex_search(svg.document(), upward));
  REQUIRE_FALSE(std::regex_search(svg.document(), upright));
  // Overviews of many tokens have numbers in place of labels; a single map keeps them.
  for (HeatMap& map : grid.maps) {
    map.rows = map.columns = 100;
    map.values.assign(10000, 0.5);
    map.row_axis.labels.assign(100, "猫");
    map.column_axis.labels.assign(100, "猫");
  }
  const std::string overview = grid_picture(grid);
  require_well_formed(overview);
  REQUIRE(count(overview, "猫") == 0);
  REQUIRE(count(overview, ">90</text>") == 6);
  grid.maps.resize(1);
  REQUIRE(count(grid_picture(grid), ">猫</text>") == 200);
}

TEST_CASE("the labels and titles of a heat map stand apart, within its margins") {
  const HeatMapPlace place{.x = 80, .y = 80, .cell = 18};
  const Margins margins = margins_of(two_by_three(), place);
  Svg svg(200, 200, "t", "d");
  draw_heat_map(svg, two_by_three(), {}, place);
  const std::string xml = svg.document();
  const PlacedText title = placed_text(xml, "map"), columns = placed_text(xml, "key"), rows = placed_text(xml, "query"),
                   turned = placed_text(xml, "&lt;end&gt;"), wide = placed_text(xml, "猫");
  REQUIRE(title.y - title.size >= place.y - margins.top - kPixelRounding);
  REQUIRE(columns.y - columns.size >= title.y + kDescender * title.size);
  REQUIRE(turned.y < place.y);
  // Five characters of a fixed-width font.
  REQUIRE(turned.y - 5 * 0.6 * turned.size >= columns.y + kDescender * columns.size);
  REQUIRE(wide.x < place.x);
  REQUIRE(wide.x - wide.size >= rows.x + kDescender * rows.size);
  REQUIRE(rows.x - rows.size >= place.x - margins.left - kPixelRounding);
  REQUIRE(title.x == place.x);
  REQUIRE(columns.x == place.x + 1.5 * place.cell);
  REQUIRE(rows.y == place.y + place.cell);
}

TEST_CASE("the labels of a heat map in SVG have a font of fixed width, its titles and numbers have not") {
  HeatMap map = two_by_three();
  const auto fixed = [&] {
    Svg svg(200, 200, "t", "d");
    draw_heat_map(svg, map, {}, {.x = 80, .y = 80, .cell = 18});
    std::vector<std::string> texts;
    const std::regex element("<text [^>]*monospace[^>]*>([^<]*)</text>");
    const std::string xml = svg.document();
    for (std::sregex_iterator at(xml.begin(), xml.end(), element), end; at != end; ++at) texts.push_back((*at)[1]);
    return texts;
  };
  REQUIRE(fixed() == std::vector<std::string>{"猫", "a", "の", "b", "&lt;end&gt;"});
  map.row_axis.labels.clear();
  REQUIRE(fixed() == std::vector<std::string>{"の", "b", "&lt;end&gt;"});
  map.column_axis.labels.clear();
  REQUIRE(fixed().empty());
}

TEST_CASE("the heat maps of attention have the weights of the chosen heads, but none of later keys if it is causal") {
  const LoadedModel loaded(maki::tests::golden_checkpoint("gpt"));
  AttentionMaps attention{
      .kind = "encoder", .causal = false, .queries = {"a", "\n"}, .keys = {" b", "c", "d"}, .layers = {}};
  for (int layer = 0; layer < 2; ++layer) {
    attention.layers.push_back(zeros({2, 2, 3}, DType::float64));
    for (int i = 0; i < 12; ++i) attention.layers.back().data<double>()[i] = 12 * layer + i;
  }
  const Words& words = words_in("en");
  HeatMapGrid grid = attention_grid(loaded, attention, {{1}, {0, 1}}, words);
  REQUIRE(grid.columns == 2);
  REQUIRE(grid.maps.size() == 2);
  REQUIRE(grid.maps[0].values == std::vector<double>{12, 13, 14, 15, 16, 17});
  const HeatMap& map = grid.maps[1];
  REQUIRE(map.title == "layer 1, head 1");
  REQUIRE((map.rows == 2 && map.columns == 3));
  REQUIRE(map.values == std::vector<double>{18, 19, 20, 21, 22, 23});
  REQUIRE(map.row_axis.title == words.query);
  REQUIRE(map.row_axis.labels == std::vector<std::string>{"a", "\\n"});
  REQUIRE(map.column_axis.title == words.key);
  REQUIRE(map.column_axis.labels == std::vector<std::string>{"␣b", "c", "d"});
  REQUIRE(grid.scale.high == 23);
  REQUIRE(grid.subtitle == words.of_encoder);
  REQUIRE(grid.source == loaded.path + ", step 5");
  attention.causal = true;
  grid = attention_grid(loaded, attention, {{0, 1}, {1}}, words);
  REQUIRE(grid.subtitle == std::string(words.of_encoder) + words.none_to_later);
  REQUIRE(grid.columns == 4);
  REQUIRE(grid.maps.size() == 2);
  for (int layer = 0; layer < 2; ++layer) {
    const std::vector<double>& values = grid.maps[static_cast<std::size_t>(layer)].values;
    for (const std::size_t later : {1U, 2U, 5U}) REQUIRE(std::isnan(values[later]));
    for (const std::size_t seen : {0U, 3U, 4U}) REQUIRE(values[seen] == 12 * layer + 6 + static_cast<double>(seen));
  }
}

TEST_CASE("the numbers of a legend stand right of it at their colours, its title above it") {
  Svg svg(300, 300, "t", "d");
  draw_legend(svg, {.low = 0, .high = 4}, 100, 50, 200, "weight");
  const std::string xml = svg.document();
  const Framed bar = frames_of(xml).at(0);
  for (const int value : {0, 1, 2, 3, 4}) {
    const PlacedText number = placed_text(xml, std::to_string(value));
    REQUIRE(number.x > bar.right);
    const double middle = bar.bottom - value * 50;
    REQUIRE(number.y > middle);
    REQUIRE(number.y - number.size < middle);
    REQUIRE(count(xml, fmt::format("<line x1=\"{0:g}\" y1=\"{1:g}\" x2=\"{2:g}\" y2=\"{1:g}\"", bar.right, middle,
                                   bar.right + 3)) == 1);
  }
  REQUIRE(placed_text(xml, "weight").y < bar.y);
}

TEST_CASE("the maps of a grid stand row by row, apart from each other and from its legend, within the picture") {
  HeatMapGrid grid = grid_of_three();
  for (std::size_t i = 0; i < 3; ++i) grid.maps[i].title = "map " + std::to_string(i);
  const std::string xml = grid_picture(grid);
  const std::vector<Framed> frames = frames_of(xml);
  REQUIRE(frames.size() == 4);
  const Framed &first = frames[0], &second = frames[1], &third = frames[2], &legend = frames[3];
  REQUIRE((second.y == first.y && legend.y == first.y && third.x == first.x));
  REQUIRE(second.x > first.right);
  REQUIRE(legend.x > second.right);
  const Framed picture = picture_of(xml);
  for (const Framed& frame : frames) REQUIRE((frame.right < picture.right && frame.bottom < picture.bottom));
  const PlacedText subtitle = placed_text(xml, "a/b: s"), above = placed_text(xml, "map 0"),
                   below = placed_text(xml, "map 2");
  REQUIRE(above.y - above.size > subtitle.y);
  REQUIRE(above.y < first.y);
  REQUIRE(below.y - below.size > first.bottom);
  REQUIRE(below.y < third.y);
  const Words& words = words_in("en");
  grid.maps.pop_back();
  REQUIRE(grid_text(grid) == "t\na/b\ns\n\n" + text_map(grid.maps[0], {}, words) + "\n" +
                                 text_map(grid.maps[1], {}, words) + "\nweight: " + text_legend({}, words));
}

TEST_CASE("a heat map in a terminal aligns full-width labels with its cells") {
  const std::string text = text_map(two_by_three(), {}, words_in("en"));
  REQUIRE(text ==
          "map\n"
          "       <\n"
          "       e\n"
          "       n\n"
          "       d\n"
          "   のb >\n"
          "猫 ..░░██\n"
          " a ██\n");
  REQUIRE(text_legend({}, words_in("en")) == ". below 0.2  ░ below 0.4  ▒ below 0.6  ▓ below 0.8  █ up to 1\n");
}

TEST_CASE("the numbers of the columns of a heat map in a terminal go as far as they end within 80 columns") {
  const auto numbers = [](std::int64_t columns, std::size_t label) {
    const HeatMap map{.title = "map",
                      .rows = 1,
                      .columns = columns,
                      .values = std::vector<double>(static_cast<std::size_t>(columns), 1),
                      .row_axis = {"", {std::string(label, 'a')}},
                      .column_axis = {"", {}}};
    const std::vector<std::string> lines = lines_of(text_map(map, {}, words_in("en")));
    REQUIRE(lines.size() == 3);
    REQUIRE(display_width(lines[2]) == 80);
    return lines[1];
  };
  REQUIRE(numbers(31, 17) == std::string(18, ' ') + fmt::format("{:<20}{:<20}{:<20}{}", 0, 10, 20, 30));
  REQUIRE(numbers(71, 8) ==
          std::string(9, ' ') + fmt::format("{:<10}{:<10}{:<10}{:<10}{:<10}{:<10}{}", 0, 10, 20, 30, 40, 50, 60));
}

TEST_CASE("a heat map in a terminal is at most 80 columns wide, and says which numbers a cell shows") {
  for (const std::int64_t size : {30, 39, 40, 60, 78, 79, 200, 512}) {
    for (const char* const label : {"", "a", "猫", "a long token of"}) {
      for (const bool sampled : {false, true}) {
        HeatMap map{.title = "map",
                    .rows = size,
                    .columns = size,
                    .values = std::vector<double>(static_cast<std::size_t>(size * size), 0.5),
                    .row_axis = {"", {}},
                    .column_axis = {"", {}},
                    .sampled = sampled};
        map.values[static_cast<std::size_t>(size + 1)] = 1;
        if (*label != 0) {
          map.row_axis.labels.assign(static_cast<std::size_t>(size), label);
          map.column_axis.labels = map.row_axis.labels;
        }
        const std::string text = text_map(map, {}, words_in("en"));
        INFO(size << " " << label << "\n" << text);
        for (const std::string& line : lines_of(text)) REQUIRE(display_width(line) <= 80);
        const bool merged = count(text, "a cell shows") == 1;
        REQUIRE(merged == (lines_of(text).size() < static_cast<std::size_t>(size)));
        // The largest number is seen unless cells show only their first one.
        REQUIRE((count(text, "█") > 0) == (!merged || !sampled));
      }
    }
  }
}

TEST_CASE("the picture of sinusoidal positions is well-formed for every size, and its numbers are right") {
  for (const auto& [length, width] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {2, 3}, {300, 20}}) {
    const PositionFacts facts = position_facts(length, width, 100);
    const std::string xml = positions_picture(facts, words_in("en"));
    require_well_formed(xml);
    REQUIRE(count(xml, "nan") == 0);
    REQUIRE(count(xml, "inf") == 0);
    for (std::size_t at = 0; (at = xml.find("<g transform=\"translate(", at)) != xml.npos; ++at) {
      const std::size_t y = xml.find(' ', xml.find('(', at)) + 1;
      REQUIRE(std::stod(xml.substr(y)) > 62);  // below title and subtitle
    }
    for (const std::string& line : lines_of(positions_text(facts, words_in("en")))) REQUIRE(display_width(line) <= 80);
  }
  const std::string odd = positions_text(position_facts(2, 3, 100), words_in("en")),
                    even = positions_text(position_facts(2, 4, 100), words_in("en"));
  REQUIRE(count(odd, "  columns    0 and    1          6.28\n  column     2                 135.37\n") == 1);
  REQUIRE(count(even, "  columns    2 and    3         62.83\n") == 1);
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
  REQUIRE(count(xml, line) == 1);
  for (const auto& [power, up] : {std::pair("1", 0.0), {"10", 1 / 3.0}, {"100", 2 / 3.0}, {"1000", 1.0}}) {
    const double at = plot.bottom - up * (plot.bottom - plot.y);
    const std::vector<PlacedText> texts = placed_texts(xml);
    REQUIRE(std::ranges::any_of(texts, [&, number = std::string(power)](const PlacedText& text) {
      return text.content == number && text.x < plot.x && text.y > at && text.y - text.size < at;
    }));
  }
  REQUIRE(placed_text(xml, words.pair).y > plot.bottom);
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

TEST_CASE("the legends of the picture of positions stand apart from their maps") {
  // A map is framed, and its legend after it.
  const std::vector<Framed> frames = frames_of(positions_picture(position_facts(30, 20, 100), words_in("en")));
  REQUIRE(frames.size() >= 4);
  for (const std::size_t map : {0U, 2U}) REQUIRE(frames[map + 1].x >= frames[map].right + 8);
}

TEST_CASE("every language has all words of the drawings, and their formats take the same numbers") {
  const PositionFacts facts = position_facts(300, 20, 100);
  for (const std::string& language : maki::languages()) {
    const maki::Words& words = words_in(language);
    INFO(language);
    const std::string xml = positions_picture(facts, words), text = positions_text(facts, words);
    require_well_formed(xml);
    REQUIRE(count(xml, " lang=\"" + language + "\"") == 1);
    for (const std::string& line : lines_of(text)) REQUIRE(display_width(line) <= 80);
    for (const char* const number : {"100", "20", "300"}) REQUIRE(count(lines_of(text).front(), number) == 1);
    REQUIRE(count(text, "{") == 0);
    const std::string run = fmt::format(fmt::runtime(words.step_of_run), "a/b", 7);
    REQUIRE((count(run, "a/b") == 1 && count(run, "7") == 1));
    const std::string described = fmt::format(fmt::runtime(words.description_of_weights), 2, 3, 4, 5);
    for (const char* const number : {"2", "3", "4", "5"}) REQUIRE(count(described, number) == 1);
  }
  REQUIRE(count(positions_picture(facts, words_in("ja")), "波長") > 0);
  REQUIRE_THROWS_WITH(words_in("jp"), ContainsSubstring("lang: must be one of en, ja; got jp"));
}
