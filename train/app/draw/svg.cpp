#include "train/app/draw/svg.h"

#include <fmt/format.h>
#include <iterator>

#include "data/io/printable.h"
#include "data/io/utf8.h"

namespace maki {
namespace {

constexpr std::string_view kSansFonts =
    "'Noto Sans', 'Helvetica Neue', Arial, 'Noto Sans CJK JP', 'Hiragino Sans', "
    "'Yu Gothic', sans-serif";
constexpr std::string_view kMonospacedFonts =
    "'DejaVu Sans Mono', Menlo, Consolas, 'Noto Sans Mono CJK JP', 'Hiragino Sans', "
    "'MS Gothic', monospace";
constexpr std::string_view kFrameColor = "#999999";

// A number rounded to two decimals (a hundredth of a pixel), without trailing zeros.
std::string number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

const char* anchor_name(TextStyle::Anchor anchor) {
  switch (anchor) {
    case TextStyle::Anchor::middle:
      return "middle";
    case TextStyle::Anchor::end:
      return "end";
    default:
      return "start";
  }
}

template <class... Args>
void append(std::string& body, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(body), format, std::forward<Args>(args)...);
}

}  // namespace

std::string xml_text(std::string_view text) {
  const std::string printable = escape_unprintable(text);
  std::string out;
  for (std::string_view left = printable; !left.empty();) {
    const char32_t c = next_code_point(left);
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      append_utf8(out, c == 0xFFFE || c == 0xFFFF ? U'\uFFFD' : c);  // the two that XML 1.0 does not allow
    }
  }
  return out;
}

Svg::Svg(double width, double height, std::string_view title, std::string_view description, std::string_view language) {
  append(body_,
         "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
         "lang=\"{2}\" font-family=\"{3}\" fill=\"#222222\">\n",
         number(width), number(height), language, kSansFonts);
  append(body_, "<title>{}</title>\n<desc>{}</desc>\n", xml_text(title), xml_text(description));
  rectangle(0, 0, width, height, "#ffffff");
}

void Svg::rectangle(double x, double y, double width, double height, std::string_view fill) {
  append(body_, "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", number(x), number(y),
         number(width), number(height), fill);
}

void Svg::frame(double x, double y, double width, double height) {
  append(body_,
         "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"0.75\"/>\n",
         number(x), number(y), number(width), number(height), kFrameColor);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view stroke) {
  append(body_, "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\"/>\n", number(x1), number(y1), number(x2),
         number(y2), stroke);
}

void Svg::circle(double x, double y, double radius, std::string_view fill) {
  append(body_, "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"/>\n", number(x), number(y), number(radius), fill);
}

void Svg::text(double x, double y, std::string_view text, const TextStyle& style) {
  append(body_, "<text x=\"{0}\" y=\"{1}\" font-size=\"{2}\"", number(x), number(y), number(style.size));
  if (style.anchor != TextStyle::Anchor::start) append(body_, " text-anchor=\"{}\"", anchor_name(style.anchor));
  if (style.bold) body_ += " font-weight=\"bold\"";
  if (style.monospaced) append(body_, " font-family=\"{}\"", kMonospacedFonts);
  if (style.upward) append(body_, " transform=\"rotate(-90 {} {})\"", number(x), number(y));
  append(body_, ">{}</text>\n", xml_text(text));
}

void Svg::path(std::string_view data, std::string_view fill) {
  append(body_, "<path fill=\"{}\" d=\"{}\"/>\n", fill, data);
}

void Svg::polyline(std::string_view points, std::string_view stroke) {
  append(body_, "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" points=\"{}\"/>\n", stroke, points);
}

void Svg::begin_group(std::string_view title, double x, double y, double unit_width, double unit_height) {
  append(body_,
         "<g transform=\"translate({} {}) scale({:.7g} {:.7g})\" shape-rendering=\"crispEdges\"><title>{}</title>\n",
         number(x), number(y), unit_width, unit_height, xml_text(title));
}

void Svg::end_group() { body_ += "</g>\n"; }

std::string Svg::document() const { return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + body_ + "</svg>\n"; }

}  // namespace maki
