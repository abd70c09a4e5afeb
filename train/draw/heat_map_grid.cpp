#include "train/draw/heat_map_grid.h"

#include <algorithm>

#include "data/text/utf8.h"

namespace maki {
namespace {

constexpr double kMargin = 24, kHeading = 62, kGap = 18, kLegendWidth = 84, kTitle = 18, kSubtitle = 12;

// Large enough to read the labels; larger where there are few tokens or few maps.
double cell_size(const HeatMapGrid& grid) {
  const double room = grid.maps.size() == 1 ? 640 : grid.maps.size() <= 4 ? 420 : 260;
  const double most = grid.maps.size() == 1 ? 26 : 18;
  return std::clamp(room / static_cast<double>(std::max(grid.maps[0].rows, grid.maps[0].columns)), 7.5, most);
}

// About the width of a text that is not set in a fixed-width font.
double text_width(const std::string& text, double size) {
  return 0.6 * size * static_cast<double>(display_width(text));
}

}  // namespace

std::string grid_picture(const HeatMapGrid& grid) {
  const HeatMap& first = grid.maps.front();
  HeatMapPlace place{.cell = cell_size(grid)};
  const Margins margins = margins_of(first, place);
  const double map_width = static_cast<double>(first.columns) * place.cell;
  const double map_height = static_cast<double>(first.rows) * place.cell;
  const double step_x = margins.left + map_width + kGap, step_y = margins.top + map_height + kGap;
  const auto columns = static_cast<std::size_t>(grid.columns);
  const double rows = static_cast<double>((grid.maps.size() + columns - 1) / columns);
  const double legend = kMargin + step_x * static_cast<double>(std::min(columns, grid.maps.size()));
  const double width = std::max({legend + kLegendWidth, 2 * kMargin + text_width(grid.title, kTitle),
                                 2 * kMargin + text_width(grid.subtitle, kSubtitle)});
  const double legend_height = std::clamp(map_height, 60.0, 240.0);
  const double height = kHeading + std::max(rows * step_y, margins.top + legend_height + kGap) + kMargin - kGap;
  Svg svg(width, height, grid.title, grid.description);
  svg.text(kMargin, 30, grid.title, {.size = kTitle, .bold = true});
  svg.text(kMargin, 50, grid.subtitle, {.size = kSubtitle});
  for (std::size_t i = 0; i < grid.maps.size(); ++i) {
    place.x = kMargin + margins.left + step_x * static_cast<double>(i % columns);
    place.y = kHeading + margins.top + step_y * static_cast<double>(i / columns);
    draw_heat_map(svg, grid.maps[i], grid.scale, place);
  }
  draw_legend(svg, grid.scale, legend, kHeading + margins.top, legend_height, grid.scale_title);
  return svg.document();
}

std::string grid_text(const HeatMapGrid& grid) {
  std::string text = grid.title + '\n' + grid.subtitle + '\n';
  for (const HeatMap& map : grid.maps) text += '\n' + text_map(map, grid.scale);
  return text + '\n' + grid.scale_title + ": " + text_legend(grid.scale);
}

}  // namespace maki
