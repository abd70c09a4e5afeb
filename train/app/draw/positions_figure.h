// What `maki positions` shows of sinusoidal positions: as numbers, and as a picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/app/draw/heat_map.h"

namespace maki {

struct PositionFacts {
  double base = 10000;
  std::int64_t length = 0, width = 0;
  std::vector<double> encoding = {};      ///< p_i, [length, width]
  std::vector<double> dot_products = {};  ///< p_i·p_j, [length, length]
  std::vector<double> wavelengths = {};   ///< of the columns 2i and 2i+1, in positions: [(width + 1) / 2]

  HeatMap encoding_map(const Words& words) const;
  HeatMap dot_product_map(const Words& words) const;
};
/// Requires: length and width are at least 1. Throws Error unless base > 1.
PositionFacts position_facts(std::int64_t length, std::int64_t width, double base);

/// An SVG document: both heat maps and the wavelengths.
std::string positions_picture(const PositionFacts& facts, const Words& words);
/// The heat maps and at most 16 of the wavelengths, for a terminal.
std::string positions_text(const PositionFacts& facts, const Words& words);

}  // namespace maki
