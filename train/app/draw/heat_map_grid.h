// Small multiples: several heat maps of the same size with one colour scale.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/app/draw/heat_map.h"

namespace maki {

struct HeatMapGrid {
  std::string title, source, subtitle;  ///< a picture has "source: subtitle" below the title, a text three lines
  std::string description;              ///< one sentence for readers who cannot see the picture
  std::string scale_title;              ///< what the colours show
  std::int64_t columns = 1;             ///< maps beside each other in a picture, at least 1
  std::vector<HeatMap> maps;
  ColorScale scale;
  const Words* words = nullptr;  ///< of the language in which the texts above are; never null when it is drawn
};

/// An SVG document. Where cells are too small for their labels, rows and columns have numbers instead. Requires: there
/// is at least one map, and all have the same rows and columns with the same labels.
std::string grid_picture(const HeatMapGrid& grid);
/// The maps one below the other, and the legend, for a terminal.
std::string grid_text(const HeatMapGrid& grid);

}  // namespace maki
