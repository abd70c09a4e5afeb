#include "train/app/draw/positions_figure.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "nn/positions.h"

namespace maki {
namespace {

// In pixels, chosen by eye.
constexpr double kMargin = 24, kHeading = 56, kMapHeight = 384, kLegendWidth = 110, kPlotHeight = 220;
const ColorScale kSinusoidColors{.low = -1, .high = 1, .palette = ColorScale::Palette::diverging};

// A quarter of a pixel at least, so that a long table does not disappear.
double cell_size(double room, std::int64_t count) { return std::max(0.25, room / static_cast<double>(count)); }

// The wavelengths over the number of the pair of columns, on a logarithmic axis.
void draw_wavelengths(Svg& svg, const PositionFacts& facts, const Words& words, double x, double y, double width,
                      double height) {
  const std::vector<double>& all = facts.wavelengths;
  const double lowest = std::floor(std::log10(all.front())), highest = std::ceil(std::log10(all.back()) + 1e-9);
  const auto place = [&](double value) { return y + height * (1 - (std::log10(value) - lowest) / (highest - lowest)); };
  svg.text(x, y - 14, words.wavelength_of_pair, {.size = 13, .bold = true});
  for (double power = lowest; power <= highest; ++power) {
    const double at = place(std::pow(10.0, power));
    svg.line(x, at, x + width, at, "#e4e4e4");
    svg.text(x - 6, at + 4, fmt::format("{:g}", std::pow(10.0, power)), {.size = 11, .anchor = TextStyle::Anchor::end});
  }
  const std::int64_t last = std::max<std::int64_t>(1, std::ssize(all) - 1);
  std::string points;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double at = x + width * static_cast<double>(i) / static_cast<double>(last);
    points += fmt::format("{:.2f},{:.2f} ", at, place(all[i]));
    if (all.size() <= 64) svg.circle(at, place(all[i]), 2.5, "#225ea8");
  }
  svg.polyline(points, "#225ea8");
  svg.frame(x, y, width, height);
  for (std::int64_t i = 0; i < std::ssize(all); i += tick_distance(std::ssize(all))) {
    const double at = x + width * static_cast<double>(i) / static_cast<double>(last);
    svg.text(at, y + height + 16, std::to_string(i), {.size = 11, .anchor = TextStyle::Anchor::middle});
  }
  svg.text(x + width / 2, y + height + 34, words.pair, {.size = 11, .anchor = TextStyle::Anchor::middle});
  svg.text(x - 58, y + height / 2, words.wavelength_axis,
           {.size = 11, .anchor = TextStyle::Anchor::middle, .upward = true});
}

std::string summary(const PositionFacts& facts, const Words& words) {
  return fmt::format(fmt::runtime(words.summary_of_positions), facts.base, facts.width, facts.length);
}

}  // namespace

PositionFacts position_facts(std::int64_t length, std::int64_t width, double base) {
  PositionFacts facts{.base = base, .length = length, .width = width};
  const Tensor table = sinusoidal_positions(length, width, base, DType::float64);
  const auto values = table.values<double>();
  facts.encoding.assign(values.begin(), values.end());
  facts.dot_products.reserve(static_cast<std::size_t>(length * length));
  for (std::int64_t i = 0; i < length; ++i) {
    for (std::int64_t j = 0; j < length; ++j) {
      double sum = 0;
      for (std::int64_t c = 0; c < width; ++c)
        sum += facts.encoding[static_cast<std::size_t>(i * width + c)] *
               facts.encoding[static_cast<std::size_t>(j * width + c)];
      facts.dot_products.push_back(sum);
    }
  }
  facts.wavelengths = position_wavelengths(width, base);
  return facts;
}

HeatMap PositionFacts::encoding_map(const Words& words) const {
  return {.title = words.encoding,
          .rows = length,
          .columns = width,
          .values = encoding,
          .row_axis = {words.position_i, {}},
          .column_axis = {words.column, {}},
          .sampled = true};
}

HeatMap PositionFacts::dot_product_map(const Words& words) const {
  return {.title = words.dot_products,
          .rows = length,
          .columns = length,
          .values = dot_products,
          .row_axis = {words.position_i, {}},
          .column_axis = {words.position_j, {}},
          .sampled = true};
}

std::string positions_picture(const PositionFacts& facts, const Words& words) {
  const HeatMap encoding = facts.encoding_map(words), products = facts.dot_product_map(words);
  const double square = cell_size(kMapHeight, facts.length);
  HeatMapPlace left{.cell = cell_size(kMapHeight, facts.width), .cell_height = square};
  HeatMapPlace right{.cell = square};
  const Margins margins = margins_of(encoding, left), second = margins_of(products, right);
  const double side = square * static_cast<double>(facts.length);
  const double wide = left.cell * static_cast<double>(facts.width);
  left.x = kMargin + margins.left;
  right.x = left.x + wide + kLegendWidth + second.left;
  left.y = right.y = kHeading + std::max(margins.top, second.top);
  const double plot = left.y + side + 64, width = right.x + side + kLegendWidth;
  Svg svg(width, plot + kPlotHeight + 34 + kMargin, words.sinusoidal_positions,
          fmt::format(fmt::runtime(words.description_of_positions), summary(facts, words)), words.name);
  svg.text(kMargin, 30, words.sinusoidal_positions, {.size = 18, .bold = true});
  svg.text(kMargin, 48, summary(facts, words), {.size = 12});
  draw_heat_map(svg, encoding, kSinusoidColors, left);
  draw_legend(svg, kSinusoidColors, left.x + wide + 16, left.y, std::min(side, 200.0), "p_i");
  const ColorScale product_colors = scale_of_range(facts.dot_products);
  draw_heat_map(svg, products, product_colors, right);
  draw_legend(svg, product_colors, right.x + side + 16, right.y, std::min(side, 200.0), "p_i · p_j");
  draw_wavelengths(svg, facts, words, left.x + 34, plot, right.x + side - left.x - 34, kPlotHeight);
  return svg.document();
}

std::string positions_text(const PositionFacts& facts, const Words& words) {
  const ColorScale products = scale_of_range(facts.dot_products);
  std::string text = fmt::format("{}: {}\n\n", words.sinusoidal_positions, summary(facts, words));
  text += text_map(facts.encoding_map(words), kSinusoidColors, words) + text_legend(kSinusoidColors, words) + '\n';
  text += text_map(facts.dot_product_map(words), products, words) + text_legend(products, words) + '\n';
  text += std::string(words.wavelengths) + '\n';
  const auto step = static_cast<std::size_t>((std::ssize(facts.wavelengths) + 15) / 16);
  for (std::size_t i = 0; i < facts.wavelengths.size(); i += step) {
    const std::size_t sine = 2 * i, cosine = sine + 1;
    const bool both = cosine < static_cast<std::size_t>(facts.width);
    text += fmt::format("  {:<21}  {:>12.2f}\n",
                        both ? fmt::format(fmt::runtime(words.two_columns), sine, cosine)
                             : fmt::format(fmt::runtime(words.one_column), sine),
                        facts.wavelengths[i]);
  }
  return text;
}

}  // namespace maki
