// Several heat maps in one picture, such as those of attention.
#include "train/app/draw/heat_map_grid.h"

#include <cmath>
#include <tuple>

#include "tests/train/drawing.h"
#include "tests/train/small_loaded.h"
#include "train/app/draw/attention_figure.h"

using namespace maki;
using namespace maki::tests;

namespace {

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

}  // namespace

TEST_CASE("a heat map in SVG has a cell for each number, its labels and a legend") {
  HeatMapGrid grid = grid_of_three();
  grid.scale.square_root = true;
  const std::string xml = grid_picture(grid);
  require_well_formed(xml);
  HeatMapGrid plain = grid;
  plain.subtitle = "";
  REQUIRE(occurrences(xml, ">" + grid.source + ": s</text>") == 1);
  REQUIRE(occurrences(grid_picture(plain), ">" + grid.source + "</text>") == 1);
  // Row by row: 0 | 0.25 | 1, and 1 | nothing.
  REQUIRE(occurrences(xml, "<path fill=\"#ffffd9\" d=\"M0 0h1v1h-1z\"/>") == 3);
  REQUIRE(occurrences(xml, "<path fill=\"#081d58\" d=\"M2 0h1v1h-1zM0 1h1v1h-1z\"/>") == 3);
  REQUIRE(occurrences(xml, "<path fill=\"#eeeeee\" d=\"M1 1h2v1h-2z\"/>") == 3);
  REQUIRE(occurrences(xml, "d=\"M1 0h1v1h-1z\"") == 3);
  REQUIRE(occurrences(xml, ">猫</text>") == 3);
  REQUIRE(occurrences(xml, ">&lt;end&gt;</text>") == 3);
  REQUIRE(occurrences(xml, ">query</text>") == 3);
  REQUIRE(occurrences(xml, ">weight</text>") == 1);
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
  REQUIRE(occurrences(overview, "猫") == 0);
  REQUIRE(occurrences(overview, ">90</text>") == 6);
  grid.maps.resize(1);
  REQUIRE(occurrences(grid_picture(grid), ">猫</text>") == 200);
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
  REQUIRE(grid.title == words.attention_weights);
  REQUIRE(grid.scale_title == words.weight);
  REQUIRE(grid.description ==
          "Heat maps of attention weights (layers: 1, heads: 2): the rows are queries (tokens: 2), "
          "the columns keys (tokens: 3).");
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
  attention.causal = false;
  for (const auto& [kind, title, query] : {std::tuple("self", words.self_attention, words.query),
                                           {"decoder", words.of_decoder, words.query},
                                           {"cross", words.cross_attention, words.query_written}}) {
    attention.kind = kind;
    grid = attention_grid(loaded, attention, {{0}, {0}}, words);
    REQUIRE(grid.subtitle == title);
    REQUIRE(grid.maps.at(0).row_axis.title == query);
  }
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
  const PlacedText title = placed_text(xml, "t");
  REQUIRE((title.x == subtitle.x && title.y < subtitle.y - subtitle.size && title.y >= title.size));
  REQUIRE(above.y - above.size > subtitle.y);
  REQUIRE(above.y < first.y);
  REQUIRE(below.y - below.size > first.bottom);
  REQUIRE(below.y < third.y);
  const Words& words = words_in("en");
  grid.maps.pop_back();
  REQUIRE(grid_text(grid) == "t\na/b\ns\n\n" + text_map(grid.maps[0], {}, words) + "\n" +
                                 text_map(grid.maps[1], {}, words) + "\nweight: " + text_legend({}, words));
}

TEST_CASE("the cells of a grid are large where there are few, and smaller where there are more than four maps") {
  const auto cell = [](std::size_t maps, std::int64_t side) {
    HeatMapGrid grid = grid_of_three();
    HeatMap map = two_by_three();
    map.rows = map.columns = side;
    map.values.assign(static_cast<std::size_t>(side * side), 0.5);
    map.row_axis.labels.clear();
    map.column_axis.labels.clear();
    grid.maps.assign(maps, map);
    const Framed frame = frames_of(grid_picture(grid)).at(0);
    REQUIRE(std::abs((frame.right - frame.x) - (frame.bottom - frame.y)) < kPixelRounding);
    return (frame.right - frame.x) / static_cast<double>(side);
  };
  for (const auto& [maps, side, pixels] : {std::tuple{1, 2, 70.0},  // room for the titles of a map
                                           {1, 20, 26.0},
                                           {1, 40, 16.0},
                                           {1, 100, 9.0},
                                           {4, 2, 70.0},
                                           {4, 20, 18.0},
                                           {4, 100, 4.2},
                                           {5, 100, 3.0},
                                           {4, 200, 2.5},
                                           {5, 200, 2.5}}) {
    INFO(maps << " maps of " << side);
    REQUIRE(std::abs(cell(static_cast<std::size_t>(maps), side) - pixels) < kPixelRounding);
  }
}

TEST_CASE("a grid is as wide as its titles need, and maps of few columns have room for theirs") {
  HeatMapGrid grid = grid_of_three();
  grid.maps.resize(2);
  for (std::size_t i = 0; i < 2; ++i) {
    HeatMap& map = grid.maps[i];
    map.title = "layer 10, head " + std::to_string(i);
    map.rows = 20, map.columns = 1;
    map.values.assign(20, 0.5);
    map.row_axis.labels.assign(20, "a");
    map.column_axis.labels = {"b"};
  }
  const std::string narrow = grid_picture(grid);
  // About 0.6 of the size of its font for each letter of a title.
  const PlacedText title = placed_text(narrow, "layer 10, head 0");
  std::vector<double> axis_titles;
  for (const PlacedText& text : placed_texts(narrow))
    if (text.content == "query") axis_titles.push_back(text.x - text.size);
  REQUIRE(axis_titles.size() == 2);
  REQUIRE(title.x + 16 * 0.6 * title.size <= axis_titles[1]);
  const auto needed = [&](const std::string& text) {
    const PlacedText placed = placed_text(grid_picture(grid), text);
    return placed.x + 0.6 * placed.size * static_cast<double>(text.size()) + placed.x;
  };
  REQUIRE(picture_of(narrow).right > needed("a/b: s"));
  grid.subtitle = std::string(200, 's');
  REQUIRE(std::abs(picture_of(grid_picture(grid)).right - needed("a/b: " + grid.subtitle)) < kPixelRounding);
  grid.title = std::string(200, 't');
  REQUIRE(std::abs(picture_of(grid_picture(grid)).right - needed(grid.title)) < kPixelRounding);
}
