// A matrix as a picture: one coloured cell for each number, in SVG (heat_map.cpp) and in a terminal (text_map.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "train/app/draw/color_scale.h"
#include "train/app/draw/svg.h"
#include "train/app/draw/words.h"

namespace maki {

/// What stands beside the rows or above the columns of a heat map.
struct Axis {
  std::string title;
  std::vector<std::string> labels;  ///< one for each row or column; empty: their numbers, from 0 on
};

/// rows · columns numbers, row by row. NaN: there is no number, as where a token must not attend to a later one.
struct HeatMap {
  std::string title;
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values;
  Axis row_axis, column_axis;
  bool sampled = false;  ///< in a terminal, a cell that stands for several numbers shows the first, not the largest
};

/// The distance of the numbers beside an axis of `count` places: 1, 2 or 5 times a power of ten, the smallest with
/// which there are at most ten numbers.
std::int64_t tick_distance(std::int64_t count);

/// How a token is shown as a label: control characters and bytes that are not UTF-8 escaped, spaces as ␣. If it takes
/// more than `most` terminal columns, its beginning and …, which take at most as many.
std::string token_label(std::string_view bytes, std::int64_t most = 16);

/// Where a heat map stands: the top left corner of its first cell, and the size of a cell, in pixels.
struct HeatMapPlace {
  double x = 0, y = 0, cell = 10, cell_height = 0;  ///< cell_height 0: cells are squares
  double height() const { return cell_height > 0 ? cell_height : cell; }
};

/// The room that titles and labels need around the cells of a map.
struct Margins {
  double left = 0, top = 0;
};
Margins margins_of(const HeatMap& map, const HeatMapPlace& place);

/// Draws cells, frame, title and the labels of both axes.
void draw_heat_map(Svg& svg, const HeatMap& map, const ColorScale& scale, const HeatMapPlace& place);
/// A bar with the colours of the scale, whose top left corner is (x, y), and numbers beside it; 12 pixels wide and
/// about 60 with its numbers. The title stands above y.
void draw_legend(Svg& svg, const ColorScale& scale, double x, double y, double height, const std::string& title);

/// The map as shades in a terminal, at most 80 columns wide (except its title), lines ending in "\n": a blank for no
/// number, then . ░ ▒ ▓ █ from low to high. Where a map is too large, a cell stands for several rows and columns, and a
/// line says so. Requires: the labels of the rows leave room for cells.
std::string text_map(const HeatMap& map, const ColorScale& scale, const Words& words);
/// The line that explains the shades, ending in "\n".
std::string text_legend(const ColorScale& scale, const Words& words);

}  // namespace maki
