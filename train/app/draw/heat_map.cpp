#include "train/app/draw/heat_map.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

#include "data/io/printable.h"
#include "data/io/utf8.h"

namespace maki {
namespace {

constexpr std::string_view kNoNumberColor = "#eeeeee";  // where there is no number
// Font sizes, and the gap between a label and its map, in pixels, chosen by eye.
constexpr double kTitleSize = 13, kAxisTitleSize = 11, kMaxLabelSize = 12, kLabelGap = 5;

// Shares of the font size: the width of a full-width character, that of another one in a fixed-width font, and how far
// the baseline is below the middle.
constexpr double kFullWidthShare = 1, kHalfWidthShare = 0.61, kBaselineShare = 0.35;

double label_width(std::string_view label, double size) {
  double width = 0;
  while (!label.empty()) {
    std::string character;
    append_utf8(character, next_code_point(label));
    const std::int64_t columns = display_width(character);
    width += columns == 2 ? kFullWidthShare : columns == 1 ? kHalfWidthShare : 0;
  }
  return width * size;
}

double label_size(double cell) { return std::min(kMaxLabelSize, 0.9 * cell); }

// A label above a column is turned if it is wider than the column.
bool turned(const std::string& label, const HeatMapPlace& place) {
  return label_width(label, label_size(place.cell)) > 1.05 * place.cell;
}

// The room above the columns that the labels need.
double height_of_labels(const HeatMap& map, const HeatMapPlace& place) {
  if (map.column_axis.labels.empty()) return kAxisTitleSize;
  const double size = label_size(place.cell);
  double height = size;
  for (const std::string& label : map.column_axis.labels) {
    if (turned(label, place)) height = std::max(height, label_width(label, size));
  }
  return height;
}

double width_of(const std::vector<std::string>& labels, double size) {
  double width = 0;
  for (const std::string& label : labels) width = std::max(width, label_width(label, size));
  return width;
}

// One path per colour, in units of cells. Cells of one colour that follow each other in a row are one rectangle.
std::map<int, std::string> paths_of(const HeatMap& map, const ColorScale& scale) {
  std::map<int, std::string> paths;  // level −1: no number
  const auto level = [&](std::int64_t r, std::int64_t c) {
    const double value = map.values[static_cast<std::size_t>(r * map.columns + c)];
    return std::isnan(value) ? -1 : scale.level(value);
  };
  for (std::int64_t r = 0; r < map.rows; ++r) {
    for (std::int64_t c = 0; c < map.columns;) {
      const std::int64_t first = c;
      const int color = level(r, first);
      while (c < map.columns && level(r, c) == color) ++c;
      paths[color] += fmt::format("M{} {}h{}v1h-{}z", first, r, c - first, c - first);
    }
  }
  return paths;
}

void draw_row_labels(Svg& svg, const HeatMap& map, const HeatMapPlace& at) {
  const std::vector<std::string>& labels = map.row_axis.labels;
  TextStyle style{.size = kAxisTitleSize, .anchor = TextStyle::Anchor::end, .monospaced = !labels.empty()};
  if (!labels.empty()) style.size = label_size(at.height());
  const std::int64_t step = labels.empty() ? tick_distance(map.rows) : 1;
  for (std::int64_t r = 0; r < map.rows; r += step) {
    const std::string text = labels.empty() ? std::to_string(r) : labels[static_cast<std::size_t>(r)];
    const double middle = at.y + (static_cast<double>(r) + 0.5) * at.height();
    svg.text(at.x - kLabelGap, middle + kBaselineShare * style.size, text, style);
  }
}

void draw_column_labels(Svg& svg, const HeatMap& map, const HeatMapPlace& at) {
  const std::vector<std::string>& labels = map.column_axis.labels;
  TextStyle style{.size = labels.empty() ? kAxisTitleSize : label_size(at.cell), .monospaced = !labels.empty()};
  const std::int64_t step = labels.empty() ? tick_distance(map.columns) : 1;
  for (std::int64_t c = 0; c < map.columns; c += step) {
    const std::string text = labels.empty() ? std::to_string(c) : labels[static_cast<std::size_t>(c)];
    const double middle = at.x + (static_cast<double>(c) + 0.5) * at.cell;
    style.upward = !labels.empty() && turned(text, at);
    style.anchor = style.upward ? TextStyle::Anchor::start : TextStyle::Anchor::middle;
    svg.text(style.upward ? middle + kBaselineShare * style.size : middle, at.y - kLabelGap, text, style);
  }
}

}  // namespace

std::int64_t tick_distance(std::int64_t count) {
  for (std::int64_t power = 1;; power *= 10) {
    for (const std::int64_t factor : {1, 2, 5}) {
      if (count <= 10 * factor * power) return factor * power;
    }
  }
}

std::string token_label(std::string_view bytes, std::int64_t most) {
  std::string visible;
  for (; !bytes.empty();) {
    const bool wide = bytes.starts_with("\u3000");  // the space that is as wide as a Japanese character
    const std::size_t size = wide ? std::string_view("\u3000").size() : 1;
    visible += wide || bytes.front() == ' ' ? "␣" : bytes.substr(0, size);
    bytes.remove_prefix(size);
  }
  const std::string text = escape_unprintable(visible);
  if (display_width(text) <= most) return text;
  std::string label;
  for (std::string_view left = text; !left.empty();) {
    std::string next = label;
    append_utf8(next, next_code_point(left));
    if (display_width(next) > most - 1) break;
    label = next;
  }
  return label + "…";
}

Margins margins_of(const HeatMap& map, const HeatMapPlace& place) {
  const double numbers = 3 * kHalfWidthShare * kAxisTitleSize;
  Margins margins;
  const std::vector<std::string>& rows = map.row_axis.labels;
  margins.left = (rows.empty() ? numbers : width_of(rows, label_size(place.height()))) + 2 * kLabelGap;
  margins.top = height_of_labels(map, place) + 2 * kLabelGap;
  if (!map.row_axis.title.empty()) margins.left += kAxisTitleSize + kLabelGap;
  if (!map.column_axis.title.empty()) margins.top += kAxisTitleSize + kLabelGap;
  if (!map.title.empty()) margins.top += kTitleSize + kLabelGap;
  return margins;
}

void draw_heat_map(Svg& svg, const HeatMap& map, const ColorScale& scale, const HeatMapPlace& at) {
  const double width = static_cast<double>(map.columns) * at.cell, height = static_cast<double>(map.rows) * at.height();
  const Margins margins = margins_of(map, at);
  // Cells are drawn in their own units, so that the paths are short.
  svg.begin_group(map.title, at.x, at.y, at.cell, at.height());
  for (const auto& [level, path] : paths_of(map, scale))
    svg.path(path, level < 0 ? kNoNumberColor : scale.color(level));
  svg.end_group();
  svg.frame(at.x, at.y, width, height);
  draw_row_labels(svg, map, at);
  draw_column_labels(svg, map, at);
  double y = at.y - margins.top + kTitleSize;
  if (!map.title.empty()) {
    svg.text(at.x, y, map.title, {.size = kTitleSize, .bold = true});
    y += kLabelGap + kAxisTitleSize;
  }
  const TextStyle axis{.size = kAxisTitleSize, .anchor = TextStyle::Anchor::middle};
  svg.text(at.x + width / 2, y, map.column_axis.title, axis);
  svg.text(at.x - margins.left + kAxisTitleSize, at.y + height / 2, map.row_axis.title,
           {.size = kAxisTitleSize, .anchor = TextStyle::Anchor::middle, .upward = true});
}

void draw_legend(Svg& svg, const ColorScale& scale, double x, double y, double height, const std::string& title) {
  constexpr double kBarWidth = 12;  // pixels
  const double step = height / ColorScale::kPaletteColors;
  svg.begin_group(title, x, y);
  for (int level = 0; level < ColorScale::kPaletteColors; ++level)
    svg.rectangle(0, height - (level + 1) * step, kBarWidth, step, scale.color(level));
  svg.end_group();
  svg.frame(x, y, kBarWidth, height);
  for (const double value : scale.ticks()) {
    const double at = y + (1 - scale.share_of(value)) * height;
    svg.line(x + kBarWidth, at, x + kBarWidth + 3, at, "#999999");
    svg.text(x + kBarWidth + 6, at + kBaselineShare * kAxisTitleSize, fmt::format("{:.3g}", value),
             {.size = kAxisTitleSize});
  }
  svg.text(x, y - 2 * kLabelGap, title, {.size = kAxisTitleSize});
}

}  // namespace maki
