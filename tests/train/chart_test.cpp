// Line charts of a report.
#include "train/app/report/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

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
  // Two points in each column, in their order.
  std::vector<std::pair<double, double>> teeth;
  for (int i = 0; i < 10'000; ++i) teeth.emplace_back(i, i % 2);
  const std::string figure = chart_figure(chart_of(teeth));
  const std::size_t begin = figure.find("points=\"") + 8;
  const std::string line = figure.substr(begin, figure.find('"', begin) - begin);
  const auto drawn = std::ranges::count(line, ',');
  REQUIRE((drawn > 300 && drawn < 400));
  std::istringstream text(line);
  double before = 0, x = 0, y = 0;
  bool low = false, high = false;
  for (char comma = 0; text >> x >> comma >> y; before = x) {
    REQUIRE(x >= before);
    REQUIRE((y == 8 || y == 194));
    (y == 8 ? high : low) = true;
  }
  REQUIRE((low && high && before == 410));
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

TEST_CASE("a line is drawn in the order of its points along the axis") {
  const std::string figure = chart_figure(chart_of({{100, 2}, {0, 1}, {50, 3}}));
  REQUIRE(figure.find("points=\"52.0,194.0 231.0,8.0 410.0,101.0 \"") != std::string::npos);
}

TEST_CASE("the numbers of an axis are round, short, and on a logarithmic scale of few decades 1, 2 and 5 of each") {
  using Texts = std::vector<std::string>;
  const auto numbers = [](double low, double high, bool logarithmic) {
    Chart chart = chart_of({{low, 1}, {high, 2}});
    chart.log_x = logarithmic;
    Texts texts;
    const std::string figure = chart_figure(chart), begin = "y=\"210.0\" text-anchor=\"middle\">";
    for (std::size_t at = 0; (at = figure.find(begin, at)) != std::string::npos;) {
      at += begin.size();
      texts.push_back(figure.substr(at, figure.find('<', at) - at));
    }
    return texts;
  };
  REQUIRE(numbers(1, 100, true) == Texts{"1", "2", "5", "10", "20", "50", "100"});
  REQUIRE(numbers(0.15, 8, true) == Texts{"0.2", "0.5", "1", "2", "5"});
  REQUIRE(numbers(15, 80, true) == Texts{"20", "50"});
  REQUIRE(numbers(1, 20'000, true) == Texts{"1", "10", "100", "1000", "10k"});
  REQUIRE(numbers(30, 40, true) == Texts{"30", "32", "34", "36", "38", "40"});  // evenly, where these are too few
  REQUIRE(numbers(0, 50'000, false) == Texts{"0", "10k", "20k", "30k", "40k", "50k"});
  REQUIRE(numbers(0, 2e6, false) == Texts{"0", "500k", "1M", "1.5M", "2M"});
  REQUIRE(numbers(0, 2e9, false) == Texts{"0", "500M", "1G", "1.5G", "2G"});
  REQUIRE(numbers(-0.25, 0.25, false) == Texts{"-0.2", "-0.1", "0", "0.1", "0.2"});
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

TEST_CASE("a chart has lines and numbers of its axes, then its levels and its series, and a key of what has a name") {
  Chart chart = chart_of({{0, 1}, {50, 3}, {100, 2}});
  chart.levels.emplace_back("a < level", 1.5);
  chart.series.push_back({"", {{0, 2}, {100, 2}}, Series::Style::faint, 7});
  chart.series.push_back({"dots", {{25, 1}}, Series::Style::points, 2});
  REQUIRE(chart_figure(chart) ==
          R"(<figure><figcaption>a &lt; b</figcaption>)"
          R"(<svg class="chart" viewBox="0 0 420 230" role="img"><title>a &lt; b</title>
<line class="grid" x1="52" y1="194.0" x2="410" y2="194.0"/>
<text x="46.0" y="198.0" text-anchor="end">1</text>
<line class="grid" x1="52" y1="147.5" x2="410" y2="147.5"/>
<text x="46.0" y="151.5" text-anchor="end">1.5</text>
<line class="grid" x1="52" y1="101.0" x2="410" y2="101.0"/>
<text x="46.0" y="105.0" text-anchor="end">2</text>
<line class="grid" x1="52" y1="54.5" x2="410" y2="54.5"/>
<text x="46.0" y="58.5" text-anchor="end">2.5</text>
<line class="grid" x1="52" y1="8.0" x2="410" y2="8.0"/>
<text x="46.0" y="12.0" text-anchor="end">3</text>
<text x="52.0" y="210.0" text-anchor="middle">0</text>
<text x="123.6" y="210.0" text-anchor="middle">20</text>
<text x="195.2" y="210.0" text-anchor="middle">40</text>
<text x="266.8" y="210.0" text-anchor="middle">60</text>
<text x="338.4" y="210.0" text-anchor="middle">80</text>
<text x="410.0" y="210.0" text-anchor="middle">100</text>
<text x="231.0" y="226.0" text-anchor="middle">steps</text>
<line class="level" x1="52" y1="147.5" x2="410" y2="147.5"/>
<polyline class="c0" points="52.0,194.0 231.0,8.0 410.0,101.0 "/>
<polyline class="c1 faint" points="52.0,101.0 410.0,101.0 "/>
<circle class="c2" cx="141.5" cy="194.0" r="3"/>
</svg><p class="soft"><span class="key c0">line</span>)"
          R"(<span class="key c2 dots">dots</span><span class="key dash">a &lt; level 1.5</span></p></figure>
)");
}

TEST_CASE("there is no chart of nothing, of one point or of no positive number") {
  REQUIRE(chart_figure(chart_of({})).empty());
  REQUIRE(chart_figure(chart_of({{1, 1}})).empty());
  Chart logarithmic = chart_of({{1, -1}, {2, -2}});
  logarithmic.log_y = true;
  REQUIRE(chart_figure(logarithmic).empty());
  REQUIRE_FALSE(chart_figure(chart_of({{1, 3}, {2, 3}})).empty());
}
