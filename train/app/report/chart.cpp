#include "train/app/report/chart.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "train/app/draw/color_scale.h"
#include "train/app/draw/svg.h"
#include "train/app/report/html.h"

namespace maki {
namespace {

using Points = std::vector<std::pair<double, double>>;

// In pixels.
constexpr double kChartWidth = 420, kChartHeight = 230, kChartLeft = 52, kChartRight = 10, kChartTop = 8,
                 kChartBottom = 36;
constexpr std::size_t kMostColumns = 180;  // of a line, with two points each
constexpr std::size_t kColors = 6;         // of the style sheet

struct Scale {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  bool logarithmic = false;

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool shows(double value) const { return std::isfinite(value) && (!logarithmic || value > 0); }
  double share(double value) const {
    if (logarithmic) return std::clamp(std::log(value / low) / std::log(high / low), 0.0, 1.0);
    return std::clamp((value - low) / (high - low), 0.0, 1.0);
  }
  // Makes room where all values are equal.
  void widen() {
    if (high - low > 1e-12 * std::abs(high)) return;
    const double room = high == 0 ? 1 : 0.05 * std::abs(high);
    low -= room, high += room;
  }
  // 1, 2 or 5 times a power of ten; on a logarithmic scale of more than two decades, powers of ten alone.
  std::vector<double> ticks() const {
    std::vector<double> all;
    if (logarithmic) {
      const bool wide = high / low > 100;
      const double first = std::max(std::floor(std::log10(low)), -300.0);  // below that, powers of ten are 0
      for (double power = std::pow(10, first); power <= high; power *= 10)
        for (const double factor : {1.0, 2.0, 5.0})
          if (factor * power >= low && factor * power <= high && (factor == 1 || !wide)) all.push_back(factor * power);
    }
    return all.size() >= 2 ? all : round_ticks(low, high);
  }
};

std::string tick_text(double value) {
  for (const auto& [size, unit] : {std::pair(1e9, "G"), {1e6, "M"}, {1e4, "k"}})
    if (std::abs(value) >= size) return fmt::format("{:g}{}", value / (size == 1e4 ? 1e3 : size), unit);
  return fmt::format("{:.4g}", value);
}

class Drawing {
 public:
  explicit Drawing(const Chart& chart) : chart_(chart) {
    x_.logarithmic = chart.log_x, y_.logarithmic = chart.log_y;
    for (const Series& series : chart.series) {
      const Points points = shown(series.points);
      const std::size_t skipped =
          chart.crops_beginning && series.style != Series::Style::points ? points.size() / 20 : 0;
      for (std::size_t i = 0; i < points.size(); ++i) {
        x_.include(points[i].first);
        if (i >= skipped && (series.style != Series::Style::faint || !chart.crops_beginning))
          y_.include(points[i].second);
      }
    }
    for (const auto& [name, level] : chart.levels)
      if (y_.shows(level)) y_.include(level);
  }

  std::string svg() {
    if (!(x_.high > x_.low) || !(y_.high >= y_.low)) return "";
    y_.widen();
    body_ = fmt::format("<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\"><title>{}</title>\n", kChartWidth,
                        kChartHeight, xml_text(chart_.title));
    draw_axes();
    for (const auto& [name, level] : chart_.levels)
      if (y_.shows(level)) horizontal("level", y_of(level));
    for (const Series& series : chart_.series) draw(series);
    return body_ + "</svg>";
  }

 private:
  Points shown(const Points& points) const {
    Points kept;
    for (const auto& [x, y] : points)
      if (x_.shows(x) && y_.shows(y)) kept.emplace_back(x, y);
    // Lines are in order, unless the file was changed by other means.
    std::ranges::stable_sort(kept, {}, &std::pair<double, double>::first);
    return kept;
  }
  double x_of(double x) const { return kChartLeft + x_.share(x) * (kChartWidth - kChartLeft - kChartRight); }
  double y_of(double y) const { return kChartTop + (1 - y_.share(y)) * (kChartHeight - kChartTop - kChartBottom); }

  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(body_), format, std::forward<Args>(args)...);
  }
  void horizontal(const char* what, double y) {
    add("<line class=\"{0}\" x1=\"{1}\" y1=\"{3:.1f}\" x2=\"{2}\" y2=\"{3:.1f}\"/>\n", what, kChartLeft,
        kChartWidth - kChartRight, y);
  }
  void label(double x, double y, const char* anchor, const std::string& text) {
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, xml_text(text));
  }
  void draw_axes() {
    for (const double tick : y_.ticks()) {
      horizontal("grid", y_of(tick));
      label(kChartLeft - 6, y_of(tick) + 4, "end", tick_text(tick));
    }
    for (const double tick : x_.ticks()) label(x_of(tick), kChartHeight - kChartBottom + 16, "middle", tick_text(tick));
    label((kChartLeft + kChartWidth - kChartRight) / 2, kChartHeight - 4, "middle", chart_.x_title);
  }
  // The lowest and the highest point of each column, in their order.
  Points thinned(const Points& points) const {
    if (points.size() <= 2 * kMostColumns) return points;
    const auto column = [&](const auto& point) { return std::floor(x_.share(point.first) * kMostColumns); };
    Points kept;
    for (auto begin = points.begin(); begin != points.end();) {
      const auto end = std::find_if(begin, points.end(), [&](const auto& p) { return column(p) != column(*begin); });
      auto [low, high] =
          std::minmax_element(begin, end, [](const auto& a, const auto& b) { return a.second < b.second; });
      if (low > high) std::swap(low, high);
      kept.push_back(*low);
      if (high != low) kept.push_back(*high);
      begin = end;
    }
    return kept;
  }
  void draw(const Series& series) {
    const Points points = thinned(shown(series.points));
    if (series.style == Series::Style::points) {
      for (const auto& [x, y] : points)
        add("<circle class=\"c{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>\n", series.color % kColors, x_of(x), y_of(y));
      return;
    }
    add("<polyline class=\"c{}{}\" points=\"", series.color % kColors,
        series.style == Series::Style::faint ? " faint" : "");
    for (const auto& [x, y] : points) add("{:.1f},{:.1f} ", x_of(x), y_of(y));
    add("\"/>\n");
  }

  const Chart& chart_;
  Scale x_, y_;
  std::string body_;
};

}  // namespace

std::string chart_figure(const Chart& chart) {
  const std::string svg = Drawing(chart).svg();
  if (svg.empty()) return "";
  std::string key;
  for (const Series& series : chart.series) {
    if (series.name.empty() || series.points.empty()) continue;
    constexpr const char* kStyles[] = {"", " faint", " dots"};
    key += fmt::format("<span class=\"key c{}{}\">{}</span>", series.color % kColors,
                       kStyles[static_cast<std::size_t>(series.style)], xml_text(series.name));
  }
  for (const auto& [name, level] : chart.levels)
    key += fmt::format("<span class=\"key dash\">{} {:.4g}</span>", xml_text(name), level);
  if (!key.empty()) key = "<p class=\"soft\">" + key + "</p>";
  return fmt::format("<figure><figcaption>{}</figcaption>{}{}</figure>\n", xml_text(chart.title), svg, key);
}

}  // namespace maki
