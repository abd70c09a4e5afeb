#include "train/app/draw/color_scale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <span>

namespace maki {
namespace {

struct Rgb {
  double red, green, blue;
};
constexpr std::array kSequential = {Rgb{255, 255, 217}, Rgb{237, 248, 177}, Rgb{199, 233, 180},
                                    Rgb{127, 205, 187}, Rgb{65, 182, 196},  Rgb{29, 145, 192},
                                    Rgb{34, 94, 168},   Rgb{37, 52, 148},   Rgb{8, 29, 88}};
constexpr std::array kDiverging = {Rgb{103, 0, 31},    Rgb{178, 24, 43},   Rgb{214, 96, 77},   Rgb{244, 165, 130},
                                   Rgb{253, 219, 199}, Rgb{247, 247, 247}, Rgb{209, 229, 240}, Rgb{146, 197, 222},
                                   Rgb{67, 147, 195},  Rgb{33, 102, 172},  Rgb{5, 48, 97}};

// The colour at a share of the palette, between its two nearest colours.
Rgb mixed(std::span<const Rgb> palette, double share) {
  const double place = share * static_cast<double>(palette.size() - 1);
  const auto left = std::min(static_cast<std::size_t>(place), palette.size() - 2);
  const double t = place - static_cast<double>(left);
  const Rgb &a = palette[left], &b = palette[left + 1];
  return {std::lerp(a.red, b.red, t), std::lerp(a.green, b.green, t), std::lerp(a.blue, b.blue, t)};
}

double largest(const std::vector<double>& values, bool absolute) {
  double most = 0;
  for (const double value : values) most = std::fmax(most, absolute ? std::abs(value) : value);
  return most > 0 ? most : 1;
}

constexpr double kRoundingError = 1e-9;  // relative: far above that of doubles, and nothing that a picture shows

// The smallest of 1, 2 and 5 times a power of ten that is at least `least`.
double round_step(double least) {
  constexpr double kLowestPower = -300;  // lower powers of ten are 0, or nearly so
  for (double power = std::pow(10.0, std::max(std::floor(std::log10(least)), kLowestPower));; power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor * power >= least * (1 - kRoundingError)) return factor * power;
    }
  }
}

}  // namespace

std::vector<double> round_ticks(double low, double high) {
  constexpr int kMaxIntervals = 6;
  const double step = round_step((high - low) / kMaxIntervals);
  // The end of a scale, such as 0.6, is not missed because of a rounding error.
  const double most = high + kRoundingError * (high - low);
  const double first = std::ceil(low / step - kRoundingError);
  std::vector<double> values;
  // Between numbers that are so large and so near that no double is between them, all ticks are the same.
  for (int i = 0; i <= kMaxIntervals && (first + i) * step <= most; ++i)
    values.push_back(first + i == 0 ? 0 : (first + i) * step);  // not -0
  return values;
}

double ColorScale::share_of(double value) const {
  const double share = std::clamp((value - low) / (high - low), 0.0, 1.0);
  return square_root ? std::sqrt(share) : share;
}

int ColorScale::level(double value) const {
  return std::min(static_cast<int>(share_of(value) * kPaletteColors), kPaletteColors - 1);
}

double ColorScale::value_at(double share) const { return low + (high - low) * (square_root ? share * share : share); }

std::vector<double> ColorScale::ticks() const {
  constexpr double kMinTickShare = 0.125;  // of the palette, between two ticks: room for their numbers
  if (!square_root) return round_ticks(low, high);
  const double range = high - low, most = high + kRoundingError * range;
  std::vector<double> values = {low};
  for (double power = std::pow(10.0, std::floor(std::log10(range)) - 3); low + power <= most; power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = low + factor * power;
      if (value <= most && share_of(value) - share_of(values.back()) >= kMinTickShare) values.push_back(value);
    }
  }
  return values;
}

std::string ColorScale::color(int level) const {
  const double share = static_cast<double>(level) / (kPaletteColors - 1);
  const Rgb c = palette == Palette::sequential ? mixed(kSequential, share) : mixed(kDiverging, share);
  return fmt::format("#{:02x}{:02x}{:02x}", std::lround(c.red), std::lround(c.green), std::lround(c.blue));
}

ColorScale scale_around_zero(const std::vector<double>& values) {
  const double most = largest(values, true);
  return {.low = -most, .high = most, .palette = ColorScale::Palette::diverging};
}

ColorScale scale_of_range(const std::vector<double>& values) {
  const auto [low, high] = std::ranges::minmax(values);
  return {.low = low, .high = high > low ? high : low + 1};
}

ColorScale scale_of_weights(const std::vector<double>& values) {
  if (std::ranges::any_of(values, [](double value) { return value < 0; })) return scale_around_zero(values);
  return {.low = 0, .high = largest(values, false), .square_root = true};
}

}  // namespace maki
