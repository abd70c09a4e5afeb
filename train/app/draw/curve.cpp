#include "train/app/draw/curve.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "data/io/number.h"
#include "data/io/utf8.h"

namespace maki {
namespace {

// The dots of a character cell: 2 × 4 in braille, 1 × 2 in ASCII.
std::size_t dots_per_column(bool utf8) { return utf8 ? 2 : 1; }
std::size_t dots_per_row(bool utf8) { return utf8 ? 4 : 2; }

// A grid of character cells.
class Canvas {
 public:
  Canvas(std::size_t columns, std::size_t rows, bool utf8)
      : columns_(columns), utf8_(utf8), dots_(columns * rows), marks_(columns * rows) {}

  void dot(std::size_t x, std::size_t y) {
    // Unicode numbers the dots of a braille cell by columns, except for the last row.
    constexpr unsigned kBraille[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    const std::size_t row = y % dots_per_row(utf8_);
    dots_[cell(x, y)] |= utf8_ ? kBraille[row][x % 2] : 1U << row;
  }
  // A character in place of the dots of a cell, or with `behind` only in an empty cell.
  void mark(std::size_t x, std::size_t y, char32_t character, bool behind) {
    if (!behind || (dots_[cell(x, y)] == 0 && marks_[cell(x, y)] == 0)) marks_[cell(x, y)] = character;
  }
  std::string line(std::size_t row) const {
    std::string text;
    for (std::size_t at = row * columns_; at < (row + 1) * columns_; ++at) append_utf8(text, character(at));
    return text;
  }

 private:
  std::size_t cell(std::size_t x, std::size_t y) const {
    return y / dots_per_row(utf8_) * columns_ + x / dots_per_column(utf8_);
  }
  char32_t character(std::size_t at) const {
    constexpr char32_t kBraillePatterns = 0x2800;
    if (marks_[at] != 0) return marks_[at];
    if (dots_[at] == 0) return U' ';
    return utf8_ ? kBraillePatterns + dots_[at] : U" '.:"[dots_[at]];
  }

  std::size_t columns_;
  bool utf8_;
  std::vector<unsigned> dots_;
  std::vector<char32_t> marks_;
};

struct Range {
  double low, high;
};

// The losses that the plot shows: those after the first twentieth of the lines about training, which is the steep
// beginning, and the dashed lines.
Range shown_losses(const CurveSubject& subject, const std::vector<double>& smooth) {
  const auto begin = smooth.begin() + std::ssize(smooth) / 20;
  const auto [low, high] = std::minmax_element(begin, smooth.end());
  Range range{*low, *high};
  const auto include = [&](std::optional<double> loss) {
    if (loss) range = {std::min(range.low, *loss), std::max(range.high, *loss)};
  };
  const std::int64_t first = subject.history.steps()[static_cast<std::size_t>(begin - smooth.begin())].step.step;
  for (const EvalPoint& point : subject.history.validations()) {
    if (point.step >= first) include(point.loss);
  }
  if (subject.history.counting()) include(subject.history.counting()->val_loss);
  include(subject.best_possible_loss);
  if (range.high - range.low < 1e-3) range = {range.low - 5e-4, range.high + 5e-4};  // a flat line in the middle
  return range;
}

// Places are dots: (0, 0) is at the top left, where losses are highest.
class Plot {
 public:
  Plot(const CurveSubject& subject, const CurveStyle& style)
      : subject_(subject),
        style_(style),
        smooth_(smoothed_losses(subject.history.steps())),
        range_(shown_losses(subject, smooth_)),
        names_(names()),
        left_(label(range_.high).size() + 2),
        columns_(std::max(style.columns, left_ + right()) - left_ - right()),
        canvas_(columns_, style.rows, style.utf8) {}

  std::vector<std::string> lines() {
    constexpr std::size_t kMinColumns = 16, kMinRows = 2;  // a smaller plot shows no shape
    if (columns_ < kMinColumns || style_.rows < kMinRows) return {};
    draw_training();
    for (const EvalPoint& point : subject_.history.validations())
      if (const auto y = dot_row(point.loss))
        canvas_.mark(dot_column(point.step), *y, style_.utf8 ? U'○' : U'o', false);
    for (const auto& [row, name] : names_) {
      for (std::size_t x = 0; x < columns_; ++x)
        canvas_.mark(x * dots_per_column(style_.utf8), row * dots_per_row(style_.utf8), style_.utf8 ? U'╌' : U'-',
                     true);
    }
    std::vector<std::string> all;
    for (std::size_t row = 0; row < style_.rows; ++row) {
      const std::string loss = row == 0 ? label(range_.high) : row + 1 == style_.rows ? label(range_.low) : "";
      const auto name = names_.find(row);
      std::string line = fmt::format("{:>{}} {}{}{}", loss, left_ - 2, style_.utf8 ? (loss.empty() ? "│" : "┤") : "|",
                                     canvas_.line(row), name == names_.end() ? "" : " " + name->second);
      line.resize(line.find_last_not_of(' ') + 1);
      all.push_back(std::move(line));
    }
    add_axis(all);
    return all;
  }

 private:
  std::string label(double loss) const { return fmt::format("{:.{}f}", loss, range_.high - range_.low < 0.1 ? 3 : 2); }

  // The rows of the dashed lines, and what stands at their right. Names that would share a row stand in neighbouring
  // ones.
  std::map<std::size_t, std::string> names() const {
    std::map<std::size_t, std::string> rows;
    const auto add = [&](const std::string& name, double loss) {
      std::size_t row = row_of(loss);
      while (rows.contains(row)) row = row + 1 < style_.rows ? row + 1 : row - 1;
      rows[row] = fmt::format("{} {}", name, label(loss));
    };
    if (style_.columns < 40) return rows;
    const bool wide = style_.columns >= 60;
    if (const auto& counting = subject_.history.counting(); counting && (wide || is_comparable(*counting)))
      add(counting_name(*counting, wide), counting->val_loss);
    if (subject_.best_possible_loss) add(wide ? "best possible" : "best", *subject_.best_possible_loss);
    return rows;
  }
  bool is_comparable(const CountingReport& counting) const {
    return subject_.history.evaluations_cover(counting.val_share);
  }
  // With the part of the text that it covers, if that of the circles is another; a narrow plot has no space for that.
  std::string counting_name(const CountingReport& counting, bool wide) const {
    if (is_comparable(counting)) return wide ? "counting alone" : "counting";
    if (counting.val_share == 1) return "counting, whole text";
    return fmt::format("counting, {:.3g}% of text", 100 * counting.val_share);
  }
  std::size_t right() const {
    std::size_t width = 0;
    for (const auto& [row, name] : names_) width = std::max(width, name.size() + 1);
    return width;
  }

  double place(double loss) const { return (range_.high - loss) / (range_.high - range_.low); }
  std::size_t dot_row_of(double loss) const {
    return static_cast<std::size_t>(
        std::lround(place(loss) * static_cast<double>(style_.rows * dots_per_row(style_.utf8) - 1)));
  }
  std::size_t row_of(double loss) const { return dot_row_of(loss) / dots_per_row(style_.utf8); }
  std::optional<std::size_t> dot_row(double loss) const {
    if (loss > range_.high || loss < range_.low) return std::nullopt;
    return dot_row_of(loss);
  }
  std::size_t dot_columns() const { return columns_ * dots_per_column(style_.utf8); }
  std::size_t dot_column(std::int64_t step) const {
    const double share = static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(1, subject_.max_steps));
    return static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(dot_columns() - 1)));
  }

  // Connects the points: between two of them, every column has the dots from the row of the column before to its own.
  void draw_training() {
    std::optional<std::pair<std::size_t, double>> before;  // column and loss
    std::optional<std::size_t> row_before;
    for (std::size_t i = 0; i < smooth_.size(); ++i) {
      const std::size_t column = dot_column(subject_.history.steps()[i].step.step);
      const std::size_t first = before ? std::min(before->first + 1, column) : column;
      for (std::size_t x = first; x <= column; ++x) {
        const double share = before && column > before->first
                                 ? static_cast<double>(x - before->first) / static_cast<double>(column - before->first)
                                 : 1;
        const auto row = dot_row(before ? before->second + share * (smooth_[i] - before->second) : smooth_[i]);
        if (row) draw_column(x, row_before.value_or(*row), *row);
        row_before = row;
      }
      before = {column, smooth_[i]};
    }
  }
  void draw_column(std::size_t x, std::size_t from, std::size_t to) {
    const std::size_t first = from < to ? from + 1 : from > to ? from - 1 : from;
    for (std::size_t y = std::min(first, to); y <= std::max(first, to); ++y) canvas_.dot(x, y);
  }

  void add_axis(std::vector<std::string>& lines) const {
    std::string axis(left_ - 1, ' ');
    axis += style_.utf8 ? "└" : "+";
    for (std::size_t x = 0; x < columns_; ++x) axis += style_.utf8 ? "─" : "-";
    lines.push_back(axis);
    const std::string end = pluralize(subject_.max_steps, "step");
    constexpr std::size_t kLegendColumns = 12;  // "○ validation"
    const std::size_t room = columns_ - 1 - std::min(columns_ - 1, end.size());
    const bool explains = !subject_.history.validations().empty() && room > 2 * kLegendColumns;
    const std::string legend = !explains ? "" : style_.utf8 ? "○ validation" : "o validation";
    const std::size_t space = room - (explains ? kLegendColumns : 0);
    lines.push_back(
        fmt::format("{:>{}}{:{}}{}{:{}}{}", "0", left_ + 1, "", space / 2, legend, "", space - space / 2, end));
  }

  const CurveSubject& subject_;
  CurveStyle style_;
  std::vector<double> smooth_;
  Range range_;
  std::map<std::size_t, std::string> names_;
  std::size_t left_, columns_;  // the columns of the labels and of the plot
  Canvas canvas_;
};

}  // namespace

std::vector<std::string> draw_curve(const CurveSubject& subject, const CurveStyle& style) {
  if (subject.history.steps().size() < 2) return {};
  return Plot(subject, style).lines();
}

}  // namespace maki
