// Line charts of a report.
#include "train/app/report/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/catch.h"

using namespace maki;

namespace {

std::vector<std::pair<double, double>> wave(int points) {
  std::vector<std::pair<double, double>> wave;
  for (int i = 1; i <= points; ++i) wave.emplace_back(i, 2 + std::sin(0.001 * i));
  return wave;
}

Chart chart_of(std::vector<std::pair<double, double>> points) {
  return {.title = "a < b", .x_title = "steps", .series = {{"line", std::move(points), Series::Style::line, 0}}};
}

// The smallest y of the line, in pixels from the top.
double highest(const std::string& figure) {
  double top = std::numeric_limits<double>::infinity();
  const std::size_t begin = figure.find("points=\"") + 8;
  for (std::size_t at = begin, end = figure.find('"', begin); (at = figure.find(',', at)) < end; ++at)
    top = std::min(top, std::stod(figure.substr(at + 1)));
  return top;
}

}  // namespace

TEST_CASE("a line of many points stays small, and keeps its highest peak") {
  auto points = wave(100'000);
  const std::string smooth = chart_figure(chart_of(points));
  points[54'321].second = 10;
  const std::string peak = chart_figure(chart_of(points));
  REQUIRE(peak.size() < 12'000);
  REQUIRE(highest(peak) == highest(smooth));  // both end at the top of the chart
  REQUIRE(peak != smooth);
  REQUIRE(peak.find(">10</text>") != peak.npos);
}

TEST_CASE("a chart escapes its texts and leaves out what is not finite, or not positive on a logarithmic scale") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Chart chart = chart_of({{0, 1}, {1, nan}, {2, 3}, {3, -1}, {4, 2}});
  REQUIRE(chart_figure(chart).find("<title>a &lt; b</title>") != std::string::npos);
  REQUIRE(chart_figure(chart).find("nan") == std::string::npos);
  chart.log_x = chart.log_y = true;
  const std::string figure = chart_figure(chart);
  REQUIRE(std::ranges::count(figure.substr(figure.find("points=")), ',') == 2);
}

// Between 52 and 410 pixels from the left, and 8 and 194 from the top.
TEST_CASE("a chart fills its area, on logarithmic scales by the decades, and a constant line is in the middle") {
  const auto shows = [](const Chart& chart, const std::string& line) {
    INFO(chart_figure(chart));
    return chart_figure(chart).find("points=\"" + line) != std::string::npos;
  };
  Chart chart = chart_of({{0, 1}, {50, 3}, {100, 2}});
  REQUIRE(shows(chart, "52.0,194.0 231.0,8.0 410.0,101.0 \""));
  chart = chart_of({{1, 1}, {10, 100}, {100, 10}});
  chart.log_x = chart.log_y = true;
  REQUIRE(shows(chart, "52.0,194.0 231.0,8.0 410.0,101.0 \""));
  for (const double value : {3.0, 0.0, -2.0})
    REQUIRE(shows(chart_of({{1, value}, {2, value}}), "52.0,101.0 410.0,101.0 \""));
}

TEST_CASE("a chart that crops the beginning is as high as the rest of its lines, and all of its points and levels") {
  std::vector<std::pair<double, double>> falling;
  for (int i = 0; i <= 39; ++i) falling.emplace_back(i, i < 2 ? 100 - i : 2 - i % 2);
  Chart chart = chart_of(falling);
  chart.crops_beginning = true;
  chart.series.push_back({"", {{0, 7}, {39, 7}}, Series::Style::faint, 0});
  const auto begins_with = [&](const std::string& line) {
    INFO(chart_figure(chart));
    return chart_figure(chart).find("points=\"" + line) != std::string::npos;
  };
  REQUIRE(begins_with("52.0,8.0 61.2,8.0 70.4,8.0 79.5,194.0 "));
  chart.series.push_back({"", {{0, 4}}, Series::Style::points, 0});
  REQUIRE(begins_with("52.0,8.0 61.2,8.0 70.4,132.0 79.5,194.0 "));
  chart.levels.emplace_back("level", 7);
  REQUIRE(begins_with("52.0,8.0 61.2,8.0 70.4,163.0 79.5,194.0 "));
  chart.crops_beginning = false;
  REQUIRE(begins_with("52.0,8.0 61.2,9.9 "));
}

TEST_CASE("there is no chart of nothing, of one point or of no positive number") {
  REQUIRE(chart_figure(chart_of({})).empty());
  REQUIRE(chart_figure(chart_of({{1, 1}})).empty());
  Chart logarithmic = chart_of({{1, -1}, {2, -2}});
  logarithmic.log_y = true;
  REQUIRE(chart_figure(logarithmic).empty());
  REQUIRE_FALSE(chart_figure(chart_of({{1, 3}, {2, 3}})).empty());
}
