#include "train/app/report/html.h"

#include "train/app/draw/svg.h"

namespace maki {

std::string html_text(std::string_view text) {
  std::string lines;
  for (std::size_t begin = 0;; ++begin) {
    const std::size_t end = text.find('\n', begin);
    lines += xml_text(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return lines;
    lines += '\n';
    begin = end;
  }
}

std::string html_section(std::string_view heading, const std::string& content) {
  return content.empty() ? "" : fmt::format("<h2>{}</h2>\n{}", xml_text(heading), content);
}

std::string html_charts(const std::string& figures) {
  return figures.empty() ? "" : "<div class=\"charts\">" + figures + "</div>\n";
}

std::string html_paragraph(std::string_view text) { return "<p>" + xml_text(text) + "</p>\n"; }
std::string html_preformatted(std::string_view text) { return "<pre>" + html_text(text) + "</pre>\n"; }

std::string html_table(const std::vector<TableRow>& rows, bool has_head) {
  std::string table = "<div class=\"wide\"><table>\n";
  for (const TableRow& row : rows) {
    const bool head = has_head && &row == &rows.front();
    table += "<tr>";
    for (const std::string& cell : row)
      table += head || &cell == &row.front()
                   ? fmt::format("<th scope=\"{}\">{}</th>", head ? "col" : "row", xml_text(cell))
                   : fmt::format("<td>{}</td>", html_text(cell));
    table += "</tr>\n";
  }
  return table + "</table></div>\n";
}

std::string svg_element(const std::string& document) {
  // HTML wants whole pixels where SVG does not.
  std::string svg = document.substr(document.find("<svg"));
  for (const char* const name : {" width=\"", " height=\""}) {
    const std::size_t begin = svg.find(name) + std::string_view(name).size(), end = svg.find('"', begin);
    svg.replace(begin, end - begin, fmt::format("{:.0f}", std::stod(svg.substr(begin, end - begin))));
  }
  return "<div class=\"picture\">" + svg + "</div>";
}

std::string html_page(std::string_view title, const PageLanguage& language, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>{}</style>\n"
      "</head>\n<body>\n<h1>{}</h1>\n{}</body>\n</html>\n",
      language.name(), xml_text(title), kReportStyle, xml_text(title), body);
}

}  // namespace maki
