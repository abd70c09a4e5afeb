// Colours of numbers. Both palettes are ColorBrewer's, which readers with any kind of colour blindness can tell apart:
// Harrower and Brewer 2003, "ColorBrewer.org: an online tool for selecting colour schemes for maps".
#pragma once

#include <string>
#include <vector>

namespace maki {

/// Values for a scale with equal steps, ascending: multiples of 1, 2 or 5 times a power of ten, at most seven.
/// Requires: low < high.
std::vector<double> round_ticks(double low, double high);

/// Maps numbers in [low, high] to a palette of kPaletteColors colours. Smaller and larger numbers get the first and the
/// last. Requires: low < high.
struct ColorScale {
  enum class Palette {
    sequential,  ///< from light yellow through green to dark blue: YlGnBu
    diverging    ///< from red through white to blue: RdBu
  };
  static constexpr int kPaletteColors = 64;  ///< each is a path of a picture; neighbours look almost alike

  double low = 0, high = 1;
  Palette palette = Palette::sequential;
  /// Colours follow the square root of (value − low) / (high − low), which tells small numbers apart.
  bool square_root = false;

  /// The colour of a value, as its place in the palette: 0 … kPaletteColors − 1. Requires: the value is not NaN.
  int level(double value) const;
  /// The share of the palette that is below a value, from 0 (low) to 1 (high), and its inverse.
  double share_of(double value) const;
  double value_at(double share) const;
  /// Values for a legend, ascending: round_ticks(); with square_root, 1, 2 or 5 times a power of ten beyond low.
  std::vector<double> ticks() const;
  /// The colour of a level, like "#ffffd9".
  std::string color(int level) const;
};

/// From 0 to the largest of the numbers, which are weights: sequential, by the square root; but scale_around_zero() if
/// some are negative. Ignores NaN. To 1 if no number is above 0.
ColorScale scale_of_weights(const std::vector<double>& values);

/// From the smallest to the largest of the numbers: sequential. If all are equal, the scale ends 1 above them.
/// Requires: there is a number, and none is NaN.
ColorScale scale_of_range(const std::vector<double>& values);

/// From −m to m, where m is the largest absolute value, or 1 if that is 0: diverging around 0. Ignores NaN.
ColorScale scale_around_zero(const std::vector<double>& values);

}  // namespace maki
