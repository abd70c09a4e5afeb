// Heat maps in SVG and in a terminal.
#include <fmt/format.h>
#include <map>

#include "tests/train/drawing.h"

using namespace maki;
using namespace maki::tests;

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

TEST_CASE("the labels and titles of a heat map stand apart, within its margins") {
  const HeatMapPlace place{.x = 80, .y = 80, .cell = 18};
  HeatMap map = two_by_three();
  map.row_axis.labels[0] = "猫猫";  // as wide as its font is high, twice
  const Margins margins = margins_of(map, place);
  Svg svg(200, 200, "t", "d");
  draw_heat_map(svg, map, {}, place);
  const std::string xml = svg.document();
  const PlacedText title = placed_text(xml, "map"), columns = placed_text(xml, "key"), rows = placed_text(xml, "query"),
                   turned = placed_text(xml, "&lt;end&gt;"), wide = placed_text(xml, "猫猫");
  REQUIRE(title.y - title.size >= place.y - margins.top - kPixelRounding);
  REQUIRE(columns.y - columns.size >= title.y + kDescender * title.size);
  REQUIRE(turned.y < place.y);
  // Five characters of a fixed-width font.
  REQUIRE(turned.y - 5 * 0.6 * turned.size >= columns.y + kDescender * columns.size);
  REQUIRE(wide.x < place.x);
  REQUIRE(wide.x - 2 * wide.size >= rows.x + kDescender * rows.size);
  REQUIRE(rows.x - rows.size >= place.x - margins.left - kPixelRounding);
  REQUIRE(title.x == place.x);
  REQUIRE(columns.x == place.x + 1.5 * place.cell);
  REQUIRE(rows.y == place.y + place.cell);
}

TEST_CASE("the labels of a heat map stand at the middles of their rows and columns, as its cells do") {
  const HeatMapPlace place{.x = 80, .y = 90, .cell = 18, .cell_height = 12};
  HeatMap map = two_by_three();
  Svg labelled(200, 200, "t", "d");
  draw_heat_map(labelled, map, {}, place);
  std::string xml = labelled.document();
  REQUIRE(occurrences(xml, "<g transform=\"translate(80 90) scale(18 12)\"") == 1);
  const Framed frame = frames_of(xml).at(0);
  REQUIRE((frame.x == 80 && frame.y == 90 && frame.right == 80 + 3 * 18 && frame.bottom == 90 + 2 * 12));
  const auto in_row = [&](const std::string& label, double middle) {
    const PlacedText text = placed_text(xml, label);
    REQUIRE(text.x < place.x);
    REQUIRE(text.y > middle);
    REQUIRE(text.y - text.size < middle);
  };
  in_row("猫", 96);
  in_row("a", 108);
  REQUIRE(placed_text(xml, "の").x == 89);
  REQUIRE(placed_text(xml, "b").x == 107);
  const PlacedText turned = placed_text(xml, "&lt;end&gt;");
  REQUIRE((turned.x > 125 && turned.x - turned.size < 125));
  map.row_axis.labels.clear();
  map.column_axis.labels.clear();
  map.rows = 30, map.columns = 12;
  map.values.assign(360, 0.5);
  Svg numbered(400, 600, "t", "d");
  draw_heat_map(numbered, map, {}, place);
  xml = numbered.document();
  std::vector<std::string> numbers;
  for (const PlacedText& text : placed_texts(xml)) numbers.push_back(text.content);
  REQUIRE(numbers == std::vector<std::string>{"0", "5", "10", "15", "20", "25", "0", "2", "4", "6", "8", "10", "map",
                                              "key", "query"});
  in_row("25", 90 + 25.5 * 12);
  REQUIRE(placed_text(xml, "8").x == 80 + 8.5 * 18);
  REQUIRE(placed_text(xml, "8").y < place.y);
}

TEST_CASE("the room for the labels of a heat map is that of the widest one, in the size of their font") {
  const auto left = [](const std::vector<std::string>& labels, double cell) {
    HeatMap map = two_by_three();
    map.row_axis.labels = labels;
    return margins_of(map, {.cell = 5, .cell_height = cell}).left;
  };
  const double narrow = left({"猫", "a"}, 20);
  REQUIRE(left({"a", "猫犬"}, 20) == narrow + 12);
  REQUIRE(left({"猫", "猫猫猫"}, 10) - left({"猫", "猫"}, 10) == Approx(2 * 9));
  // A mark that combines with the character before it takes no room.
  REQUIRE(left({"e\u0301e\u0301", "a"}, 20) == left({"ee", "a"}, 20));
  const double character = left({"ab", "a"}, 20) - left({"a", "a"}, 20);
  REQUIRE((character >= 0.6 * 12 && character < 0.65 * 12));  // of a fixed-width font
  // Numbers have at most three digits.
  REQUIRE(left({}, 20) - left({"a", "a"}, 20) >= (3 * 11 - 12.2) * 0.6);
}

TEST_CASE("a label above a column is turned if it is wider than the column") {
  HeatMap map = two_by_three();
  map.column_axis.labels = {"のの", "ab", "abc"};
  Svg svg(200, 200, "t", "d");
  draw_heat_map(svg, map, {}, {.x = 80, .y = 80, .cell = 18});
  std::vector<std::string> turned;
  const std::string xml = svg.document();
  const std::regex upward(R"re(rotate\(-90[^>]*>([^<]*)<)re");
  for (std::sregex_iterator at(xml.begin(), xml.end(), upward), end; at != end; ++at) turned.push_back((*at)[1]);
  REQUIRE(turned == std::vector<std::string>{"のの", "abc", "query"});
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

TEST_CASE("a legend is a bar of all colours upward, its numbers right of it at their colours, its title above it") {
  Svg svg(300, 300, "t", "d");
  const ColorScale scale{.low = 0, .high = 4};
  draw_legend(svg, scale, 100, 50, 192, "weight");
  const std::string xml = svg.document();
  const Framed bar = frames_of(xml).at(0);
  REQUIRE((bar.x == 100 && bar.y == 50 && bar.bottom == 242));
  // In units of a pixel, from the top left corner of the bar on.
  std::string colors =
      "<g transform=\"translate(100 50) scale(1 1)\" shape-rendering=\"crispEdges\"><title>weight</title>\n";
  for (int level = 0; level < ColorScale::kPaletteColors; ++level)
    colors += fmt::format("<rect x=\"0\" y=\"{}\" width=\"{}\" height=\"3\" fill=\"{}\"/>\n", 3 * (63 - level),
                          bar.right - bar.x, scale.color(level));
  REQUIRE(occurrences(xml, colors + "</g>\n") == 1);
  for (const int value : {0, 1, 2, 3, 4}) {
    const PlacedText number = placed_text(xml, std::to_string(value));
    REQUIRE(number.x > bar.right);
    const double middle = bar.bottom - value * 48;
    REQUIRE(number.y > middle);
    REQUIRE(number.y - number.size < middle);
    REQUIRE(occurrences(xml, fmt::format("<line x1=\"{0:g}\" y1=\"{1:g}\" x2=\"{2:g}\" y2=\"{1:g}\"", bar.right, middle,
                                         bar.right + 3)) == 1);
  }
  REQUIRE(placed_text(xml, "weight").y < bar.y);
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

TEST_CASE("marks that combine with a character stand with it above their column in a terminal") {
  HeatMap map = two_by_three();
  map.column_axis.labels = {"e\u0301", "猫e\u0301", "b"};
  REQUIRE(text_map(map, {}, words_in("en")) ==
          "map\n"
          "     猫\n"
          "   e\u0301 e\u0301 b\n"
          "猫 ..░░██\n"
          " a ██\n");
}

TEST_CASE("a label of more than eight characters above a column in a terminal is cut") {
  HeatMap map = two_by_three();
  map.column_axis.labels = {"12345678", "123456789", "b"};
  REQUIRE(text_map(map, {}, words_in("en"))
              .starts_with("map\n"
                           "   1 1\n"
                           "   2 2\n"
                           "   3 3\n"
                           "   4 4\n"
                           "   5 5\n"
                           "   6 6\n"
                           "   7 7\n"
                           "   8 … b\n"));
}

TEST_CASE(
    "a cell of a heat map in a terminal stands for as few numbers as fit, of which it shows the largest or first") {
  const auto shown = [](std::int64_t columns, bool sampled) {
    HeatMap map{.title = "map",
                .rows = 200,
                .columns = columns,
                .values = std::vector<double>(static_cast<std::size_t>(200 * columns), 0.1),
                .row_axis = {"", {}},
                .column_axis = {"", {}},
                .sampled = sampled};
    return lines_of(text_map(map, {}, words_in("en"))).at(1);
  };
  const std::string end = "; rows and columns have numbers";
  // Beside numbers of three digits and a space there are 76 cells.
  REQUIRE(shown(76, false) == "a cell shows the largest of 2 rows" + end);
  REQUIRE(shown(77, false) == "a cell shows the largest of 4 x 2 numbers" + end);
  REQUIRE(shown(152, false) == "a cell shows the largest of 4 x 2 numbers" + end);
  REQUIRE(shown(153, false) == "a cell shows the largest of 6 x 3 numbers" + end);
  REQUIRE(shown(152, true) == "a cell shows the first of 4 x 2 numbers" + end);
  REQUIRE(shown(76, true) == "a cell shows the first of 2 rows" + end);
}

TEST_CASE("the rows of a heat map in a terminal have numbers where their labels leave no room for the columns") {
  const auto lines = [](std::int64_t size) {
    HeatMap map{.title = "map",
                .rows = size,
                .columns = size,
                .values = std::vector<double>(static_cast<std::size_t>(size * size), 1),
                .row_axis = {"", {}},
                .column_axis = {"", {}}};
    map.row_axis.labels.assign(static_cast<std::size_t>(size), "a long token of");
    map.column_axis.labels = map.row_axis.labels;
    return lines_of(text_map(map, {}, words_in("en")));
  };
  REQUIRE(lines(64).back().starts_with("a long token of █"));
  for (const std::int64_t size : {65, 70, 77}) {
    const std::vector<std::string> all = lines(size);
    REQUIRE(all.size() == 3 + static_cast<std::size_t>(size + 1) / 2);
    REQUIRE(all[1] == "a cell shows the largest of 2 rows; rows and columns have numbers");
    REQUIRE(all[2].starts_with("   0         10        20 "));
    for (std::size_t row = 0; row < all.size() - 3; ++row) {
      REQUIRE(all[row + 3].starts_with(fmt::format("{:2} █", 2 * row)));
      REQUIRE(display_width(all[row + 3]) == 3 + size);
    }
  }
}

TEST_CASE("a heat map in a terminal is at most 80 columns wide, and says which numbers a cell shows") {
  for (const std::int64_t size : {30, 39, 40, 60, 64, 65, 77, 78, 79, 200, 512}) {
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
        const bool merged = occurrences(text, "a cell shows") == 1;
        REQUIRE(merged == (lines_of(text).size() < static_cast<std::size_t>(size)));
        // The largest number is seen unless cells show only their first one.
        REQUIRE((occurrences(text, "█") > 0) == (!merged || !sampled));
      }
    }
  }
}
