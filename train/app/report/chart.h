// Line charts in SVG, coloured by the style sheet of the page (train/app/report/html.cpp), so that they are dark where
// the page is dark.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace maki {

struct Series {
  enum class Style { line, faint, points };
  std::string name;                               ///< for the key below the chart; empty: not in it
  std::vector<std::pair<double, double>> points;  ///< in ascending order of x; numbers that are not finite are left out
  Style style = Style::line;
  std::size_t color = 0;  ///< of six, which are used again in turn
};

struct Chart {
  std::string title, x_title;
  std::vector<Series> series = {};
  std::vector<std::pair<std::string, double>> levels = {};  ///< dashed lines across, with their names
  bool log_x = false, log_y = false;                        ///< then points that are not positive are left out
  /// Leaves out the heights of the first twentieth of each line, which would make all others look alike; what is higher
  /// or lower than the rest ends at the edge.
  bool crops_beginning = false;
};

/// A figure: the chart, its title and a key. Empty if there is nothing to show. A series of more than a few hundred
/// points is drawn with the lowest and the highest of those that fall together, so that no peak is lost.
std::string chart_figure(const Chart& chart);

}  // namespace maki
