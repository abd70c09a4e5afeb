// HTML that is readable as a file of its own: no script, and nothing that is loaded from elsewhere.
#pragma once

#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

namespace maki {

/// The style sheet of a report, which is embedded when maki is built.
extern const std::string_view kReportStyle;

/// The language of a page: chooses one of two texts.
class PageLanguage {
 public:
  /// Requires: `name` is one of languages() of train/app/draw/words.h.
  explicit PageLanguage(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  const char* operator()(const char* english, const char* japanese) const { return name_ == "ja" ? japanese : english; }
  /// Of two formats of fmt, filled with these values.
  template <class... Values>
  requires(sizeof...(Values) > 0) std::string operator()(const char* english, const char* japanese,
                                                         const Values&... values) const {
    return fmt::format(fmt::runtime((*this)(english, japanese)), values...);
  }

 private:
  std::string name_;
};

/// A row of a table: a name, and what is said about it. All are texts, which are escaped.
using TableRow = std::vector<std::string>;

/// As xml_text(), but line ends stay.
std::string html_text(std::string_view text);
/// A heading and what stands below it, which is HTML; nothing if that is empty.
std::string html_section(std::string_view heading, const std::string& content);
/// Charts (chart_figure()), as many beside each other as there is room for.
std::string html_charts(const std::string& figures);
/// Escaped: <p>, <pre>, and a table whose first row may be a head.
std::string html_paragraph(std::string_view text);
std::string html_preformatted(std::string_view text);
std::string html_table(const std::vector<TableRow>& rows, bool has_head = false);
/// An SVG document (Svg::document()) as a part of a page.
std::string svg_element(const std::string& document);

/// The whole page; `body` is HTML.
std::string html_page(std::string_view title, const PageLanguage& language, const std::string& body);

}  // namespace maki
