// Colours of numbers. Both palettes are ColorBrewer's, which readers with any kind of colour blindness can tell apart:
// Harrower and Brewer 2003, "ColorBrewer.org: an online tool for selecting colour schemes for maps".
#pragma once

#include <string>
#include <vector>

namespace maki {

/// Maps numbers in [low, high] to a palette of kPaletteColors colours. Smaller and larger numbers get the first and the
/// last.
struct ColorScale {
  enum class Palette {
    sequential,  ///< from light yellow through green to dark blue: YlGnBu
    diverging    ///< from red through white to blue: RdBu
  };
  static constexpr int kPaletteColors = 64;

  double low = 0, high = 1;
  Palette palette = Palette::sequential;
  /// Colours follow the square root of (value − low) / (high − low), which tells small numbers apart.
  bool square_root = false;

  /// The colour of a value, as its place in the palette: 0 … kPaletteColors − 1. Requires: the value is not NaN.
  int level(double value) const;
  /// The share of the palette that is below a value, from 0 (low) to 1 (high), and its inverse.
  double share_of(double value) const;
  double value_at(double share) const;
  /// Values for a legend: low, high and a few between.
  std::vector<double> ticks() const;
  /// The colour of a level, like "#ffffd9".
  std::string color(int level) const;
};

/// From 0 to the largest of the numbers, which are weights: sequential, and diverging around 0 if some are negative.
/// Ignores NaN.
ColorScale scale_of_weights(const std::vector<double>& values);

/// From the smallest to the largest of the numbers: sequential.
ColorScale scale_of_range(const std::vector<double>& values);

/// From −m to m, where m is the largest absolute value: diverging around 0.
ColorScale scale_around_zero(const std::vector<double>& values);

}  // namespace maki
