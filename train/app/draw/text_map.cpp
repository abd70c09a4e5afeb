// Heat maps in a terminal. Full-width characters take two columns, so cells are two columns wide where there is room.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "data/io/utf8.h"
#include "train/app/draw/heat_map.h"

namespace maki {
namespace {

constexpr std::int64_t kMaxColumns = 80;     // of a terminal of the usual width
constexpr std::int64_t kMaxHeaderLines = 8;  // longer labels of columns, which run downwards, are cut
constexpr std::array<const char*, 5> kShades = {".", "░", "▒", "▓", "█"};
constexpr auto kNoNumber = std::numeric_limits<double>::quiet_NaN();

// A label as what is printed in one place each: characters with the marks that combine with them.
std::vector<std::string> glyphs(const std::string& label) {
  std::vector<std::string> list;
  for (std::string_view left = label; !left.empty();) {
    std::string one;
    append_utf8(one, next_code_point(left));
    if (display_width(one) == 0 && !list.empty()) {
      list.back() += one;
    } else {
      list.push_back(one);
    }
  }
  return list;
}

std::string padded_left(const std::string& text, std::int64_t width) {
  return std::string(static_cast<std::size_t>(std::max<std::int64_t>(0, width - display_width(text))), ' ') + text;
}
std::string padded_right(const std::string& text, std::int64_t width) {
  return text + std::string(static_cast<std::size_t>(std::max<std::int64_t>(0, width - display_width(text))), ' ');
}

// How a map fits into the terminal: cells of `width` columns, each for several rows and columns of the map.
struct Fit {
  std::int64_t label = 0, width = 1, rows = 1, columns = 1;
  bool numbers = false;  // of the rows stand beside them, and not their labels
};

std::string row_label(const HeatMap& map, std::int64_t row, bool numbers) {
  return numbers ? std::to_string(row) : map.row_axis.labels[static_cast<std::size_t>(row)];
}

Fit fit(const HeatMap& map) {
  Fit result{.numbers = map.row_axis.labels.empty()};
  const auto room = [&] {
    result.label = 0;
    for (std::int64_t r = 0; r < map.rows; ++r)
      result.label = std::max(result.label, display_width(row_label(map, r, result.numbers)));
    return kMaxColumns - result.label - 1;
  };
  if (const std::int64_t columns = room(); map.columns <= columns) {
    result.width = 2 * map.columns <= columns ? 2 : 1;
  } else {
    result.numbers = true;
    const std::int64_t numbered = room();
    result.columns = (map.columns + numbered - 1) / numbered;
  }
  // A character is twice as high as it is wide, so a cell of one column stands for twice as many rows as columns,
  // unless the rows have labels.
  if (result.width == 1 && result.numbers) result.rows = 2 * result.columns;
  return result;
}

// The number that a cell shows; NaN if it has none.
double value_of(const HeatMap& map, std::int64_t row, std::int64_t column, const Fit& at) {
  const auto value = [&](std::int64_t r, std::int64_t c) {
    return map.values[static_cast<std::size_t>(r * map.columns + c)];
  };
  if (map.sampled) return value(row, column);
  double most = kNoNumber;
  for (std::int64_t r = row; r < std::min(row + at.rows, map.rows); ++r) {
    for (std::int64_t c = column; c < std::min(column + at.columns, map.columns); ++c)
      most = std::fmax(most, value(r, c));
  }
  return most;
}

// The labels of the columns, from top to bottom, the last characters in the last line; empty if they do not fit.
std::string upright_labels(const HeatMap& map, const Fit& at) {
  std::vector<std::vector<std::string>> columns;
  std::size_t lines = 0;
  for (const std::string& label : map.column_axis.labels) {
    columns.push_back(glyphs(label));
    std::vector<std::string>& own = columns.back();
    if (own.size() > kMaxHeaderLines) {
      own.resize(kMaxHeaderLines - 1);
      own.emplace_back("…");
    }
    for (const std::string& glyph : own) {
      if (display_width(glyph) > at.width) return "";
    }
    lines = std::max(lines, own.size());
  }
  std::string text;
  for (std::size_t line = 0; line < lines; ++line) {
    text += std::string(static_cast<std::size_t>(at.label) + 1, ' ');
    for (const std::vector<std::string>& own : columns) {
      const std::size_t skipped = lines - own.size();
      text += padded_right(line < skipped ? "" : own[line - skipped], at.width);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

// The numbers of the columns, at every tenth or so.
std::string column_numbers(const HeatMap& map, const Fit& at) {
  constexpr std::int64_t kCellsBetweenNumbers = 10;  // room for numbers of several digits
  std::string text(static_cast<std::size_t>(at.label) + 1, ' ');
  for (std::int64_t cell = 0; cell * at.columns < map.columns; cell += kCellsBetweenNumbers) {
    const std::int64_t place = at.label + 1 + cell * at.width;
    const std::string number = std::to_string(cell * at.columns);
    if (place + std::ssize(number) > kMaxColumns) break;
    text = padded_right(text, place);
    text += number;
  }
  return text + '\n';
}

}  // namespace

std::string text_map(const HeatMap& map, const ColorScale& scale, const Words& words) {
  const Fit at = fit(map);
  std::string text = map.title.empty() ? "" : map.title + '\n';
  if (at.rows * at.columns > 1) {
    const std::string several = at.columns > 1 ? fmt::format(fmt::runtime(words.block_of_numbers), at.rows, at.columns)
                                               : fmt::format(fmt::runtime(words.rows), at.rows);
    text += fmt::format(fmt::runtime(map.sampled ? words.shows_first : words.shows_largest), several) + '\n';
  }
  std::string header = at.rows > 1 || map.column_axis.labels.empty() ? "" : upright_labels(map, at);
  text += header.empty() ? column_numbers(map, at) : header;
  for (std::int64_t r = 0; r < map.rows; r += at.rows) {
    std::string line = padded_left(row_label(map, r, at.numbers), at.label) + ' ';
    for (std::int64_t c = 0; c < map.columns; c += at.columns) {
      const double value = value_of(map, r, c, at);
      const auto shade = std::isnan(value) ? 0
                                           : static_cast<std::size_t>(scale.level(value)) * kShades.size() /
                                                 ColorScale::kPaletteColors;
      for (std::int64_t i = 0; i < at.width; ++i) line += std::isnan(value) ? " " : kShades[shade];
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

std::string text_legend(const ColorScale& scale, const Words& words) {
  std::string text;
  for (std::size_t i = 0; i < kShades.size(); ++i) {
    const double share = static_cast<double>(i + 1) / static_cast<double>(kShades.size());
    text += fmt::format("{}{} ", i > 0 ? "  " : "", kShades[i]) +
            fmt::format(fmt::runtime(i + 1 < kShades.size() ? words.below : words.up_to), scale.value_at(share));
  }
  return text + '\n';
}

}  // namespace maki
