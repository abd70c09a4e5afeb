#include "train/app/draw/heat_map_grid.h"

#include <algorithm>

#include "data/io/utf8.h"

namespace maki {
namespace {

// In pixels, chosen by eye.
constexpr double kGridMargin = 24, kGridHeading = 62, kGap = 18, kGridLegendWidth = 84, kGridTitleSize = 18,
                 kGridSubtitleSize = 12;

// In pixels: the smallest cell whose labels can be read, and the least room for a map, because of its titles.
constexpr double kMinLegibleCell = 7, kMinSide = 140;

// Cells are large where there are few. Those of a single map are never too small for labels that can be read; several
// maps are an overview, whose cells may be too small for labels. The bounds, in pixels, were chosen without a
// measurement.
double cell_size(const HeatMapGrid& grid) {
  const auto count = static_cast<double>(std::max(grid.maps[0].rows, grid.maps[0].columns));
  if (grid.maps.size() == 1) return std::clamp(640 / count, 9.0, std::max(26.0, kMinSide / count));
  return std::clamp((grid.maps.size() <= 4 ? 420 : 300) / count, 2.5, std::max(18.0, kMinSide / count));
}

// About the width of a text that is not set in a fixed-width font.
double text_width(const std::string& text, double size) {
  return 0.6 * size * static_cast<double>(display_width(text));
}

}  // namespace

std::string grid_picture(const HeatMapGrid& grid) {
  const std::string subtitle = grid.source + (grid.subtitle.empty() ? "" : ": " + grid.subtitle);
  HeatMapPlace place{.cell = cell_size(grid)};
  std::vector<HeatMap> maps = grid.maps;
  for (HeatMap& map : maps) {
    if (place.cell >= kMinLegibleCell) break;
    map.row_axis.labels.clear();
    map.column_axis.labels.clear();
  }
  const HeatMap& first = maps.front();
  const Margins margins = margins_of(first, place);
  const double map_width = static_cast<double>(first.columns) * place.cell;
  const double map_height = static_cast<double>(first.rows) * place.cell;
  const double step_x = margins.left + std::max(map_width, kMinSide) + kGap;
  const double step_y = margins.top + std::max(map_height, kMinSide) + kGap;
  const auto columns = static_cast<std::size_t>(grid.columns);
  const std::size_t rows = (grid.maps.size() + columns - 1) / columns;
  const double legend = kGridMargin + step_x * static_cast<double>(std::min(columns, grid.maps.size()));
  const double width = std::max({legend + kGridLegendWidth, 2 * kGridMargin + text_width(grid.title, kGridTitleSize),
                                 2 * kGridMargin + text_width(subtitle, kGridSubtitleSize)});
  const double legend_height = std::clamp(map_height, 60.0, 240.0);
  const double height = kGridHeading +
                        std::max(static_cast<double>(rows) * step_y, margins.top + legend_height + kGap) + kGridMargin -
                        kGap;
  Svg svg(width, height, grid.title, grid.description, grid.words->name);
  svg.text(kGridMargin, 30, grid.title, {.size = kGridTitleSize, .bold = true});
  svg.text(kGridMargin, 50, subtitle, {.size = kGridSubtitleSize});
  for (std::size_t i = 0; i < grid.maps.size(); ++i) {
    place.x = kGridMargin + margins.left + step_x * static_cast<double>(i % columns);
    const std::size_t row = i / columns;
    place.y = kGridHeading + margins.top + step_y * static_cast<double>(row);
    draw_heat_map(svg, maps[i], grid.scale, place);
  }
  draw_legend(svg, grid.scale, legend, kGridHeading + margins.top, legend_height, grid.scale_title);
  return svg.document();
}

std::string grid_text(const HeatMapGrid& grid) {
  std::string text = grid.title + '\n' + grid.source + '\n' + grid.subtitle + '\n';
  for (const HeatMap& map : grid.maps) text += '\n' + text_map(map, grid.scale, *grid.words);
  return text + '\n' + grid.scale_title + ": " + text_legend(grid.scale, *grid.words);
}

}  // namespace maki
