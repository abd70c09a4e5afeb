// Writes pictures in SVG, which browsers and editors show without a library: https://www.w3.org/TR/SVG2/.
#pragma once

#include <string>
#include <string_view>

namespace maki {

/// How a text is set: `x` is its left end, its middle or its right end.
struct TextStyle {
  enum class Anchor { start, middle, end };
  double size = 12;  ///< of the font, in pixels
  Anchor anchor = Anchor::start;
  bool bold = false;
  bool monospaced = false;  ///< for tokens
  bool upward = false;      ///< turned by 90° counterclockwise, so that it reads from bottom to top
};

/// The text with & < > and " escaped, and the characters that XML does not allow made visible (escape_unprintable()).
std::string xml_text(std::string_view text);

/// A picture of this size in pixels on a white background. What is drawn later covers what was drawn before. Titles,
/// descriptions and texts may come from a user: they are escaped. Colours, path data and points are written as they
/// are.
class Svg {
 public:
  /// `title` and `description` are read aloud by screen readers, and browsers show the title. `language` is that of the
  /// texts, as a tag of BCP 47; fonts have other characters in Japanese than in Chinese.
  Svg(double width, double height, std::string_view title, std::string_view description,
      std::string_view language = "en");

  void rectangle(double x, double y, double width, double height, std::string_view fill);
  /// A rectangle that is not filled, with a thin grey line.
  void frame(double x, double y, double width, double height);
  void line(double x1, double y1, double x2, double y2, std::string_view stroke);
  void circle(double x, double y, double radius, std::string_view fill);
  void text(double x, double y, std::string_view text, const TextStyle& style = {});
  /// A filled path, whose data is that of the attribute d.
  void path(std::string_view data, std::string_view fill);
  /// A line through points, "x,y x,y …".
  void polyline(std::string_view points, std::string_view stroke);

  /// Begins a group with a title of its own, in coordinates that begin at (x, y) and have units of these sizes, until
  /// the end_group() that belongs to it. Its edges are not smoothed, so that there are no gaps between cells.
  void begin_group(std::string_view title, double x, double y, double unit_width = 1, double unit_height = 1);
  void end_group();

  /// The whole document. Requires: every group has been ended.
  std::string document() const;

 private:
  std::string body_;
};

}  // namespace maki
