#include "train/app/report/html.h"

#include <fmt/format.h>

#include "train/app/draw/svg.h"

namespace maki {
namespace {

// The colours of lines are those of Okabe and Ito, which readers with any kind of colour blindness can tell apart
// (https://jfly.uni-koeln.de/color/). Those of b0 … b7, for surprise, differ in lightness.
constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--ink:#1b1b1b;--soft:#5a5a5a;--line:#d5d5d5;--page:#fff;--s0:#0072b2;--s1:#b34700;--s2:#007a5a;
--s3:#8a4b7c;--s4:#6b5b00;--s5:#3d5c7a}
@media(prefers-color-scheme:dark){:root{--ink:#e8e8e8;--soft:#a8a8a8;--line:#444;--page:#161616;--s0:#56b4e9;--s1:#e69f00;
--s2:#2bc79a;--s3:#e0a0cb;--s4:#f0e442;--s5:#9fc3e6}}
@media print{:root{--ink:#000;--soft:#333;--line:#bbb;--page:#fff;--s0:#0072b2;--s1:#b34700;--s2:#007a5a;--s3:#8a4b7c;
--s4:#6b5b00;--s5:#3d5c7a}figure,table,pre{break-inside:avoid}h2{break-after:avoid}}
body{font:16px/1.55 system-ui,'Noto Sans','Noto Sans CJK JP','Hiragino Sans',sans-serif;color:var(--ink);background:var(--page);
max-width:56rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;line-height:1.25;overflow-wrap:anywhere}h2{font-size:1.2rem;margin:2.5rem 0 .6rem}
p,li,figcaption{overflow-wrap:anywhere}.soft,figcaption{color:var(--soft);font-size:.9rem}
pre,.text{white-space:pre-wrap;overflow-wrap:anywhere;font:.88rem/1.6 ui-monospace,'DejaVu Sans Mono','Noto Sans Mono CJK JP',monospace;
border:1px solid var(--line);border-radius:.3rem;padding:.7rem;margin:.6rem 0}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.92rem;margin:.5rem 0}
th,td{text-align:left;vertical-align:top;padding:.22rem 1rem .22rem 0;border-bottom:1px solid var(--line);font-weight:400;
font-variant-numeric:tabular-nums;overflow-wrap:anywhere}tr>th:first-child{color:var(--soft);min-width:7rem}
figure{margin:1rem 0}svg{max-width:100%;height:auto;display:block}.picture{background:#fff;overflow-x:auto}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,20rem),1fr));gap:.5rem 1.5rem}
svg.chart{width:100%;overflow:visible}.charts figure{max-width:34rem}.chart text{fill:var(--soft);font-size:12px}.chart .grid{stroke:var(--line)}.chart .level{stroke:var(--soft);stroke-dasharray:5 4}
.chart polyline{fill:none;stroke-width:1.8;stroke-linejoin:round}.chart .faint{stroke-width:1;opacity:.35}
.c0{stroke:var(--s0);color:var(--s0)}.c1{stroke:var(--s1);color:var(--s1)}.c2{stroke:var(--s2);color:var(--s2)}.c3{stroke:var(--s3);color:var(--s3)}
.c4{stroke:var(--s4);color:var(--s4)}.c5{stroke:var(--s5);color:var(--s5)}.chart circle,.chart path{fill:var(--page);stroke-width:1.6}
.key{display:inline-block;margin-right:1.2rem}.key::before{content:"";display:inline-block;width:1.4rem;border-top:3px solid;vertical-align:.25rem;
margin-right:.4rem}.key.faint::before{opacity:.35}.key.dots::before{width:.5rem;height:.5rem;border:2px solid;border-radius:50%;vertical-align:-.05rem}
.key.dash::before{border-top:2px dashed}
.text span{color:#111;border-radius:.15rem}.b0{background:#ffffe5}.b1{background:#e3f4c8}.b2{background:#b7e3c0}.b3{background:#7fcdbb}
.b4{background:#41b6c4}.text .b5,.b5{background:#1d78b5;color:#fff}.text .b6,.b6{background:#225ea8;color:#fff}.text .b7,.b7{background:#0a1d58;color:#fff}
)";

std::string element(const char* name, std::string_view text) {
  return fmt::format("<{0}>{1}</{0}>\n", name, xml_text(text));
}

}  // namespace

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

std::string html_heading(std::string_view text) { return element("h2", text); }
std::string html_paragraph(std::string_view text) { return element("p", text); }
std::string html_preformatted(std::string_view text) { return "<pre>" + html_text(text) + "</pre>\n"; }

std::string html_table(const std::vector<TableRow>& rows, bool has_head) {
  std::string table = "<div class=\"wide\"><table>\n";
  for (const TableRow& row : rows) {
    const bool head = has_head && &row == &rows.front();
    table += fmt::format("<tr><th scope=\"{}\">{}</th>", head ? "col" : "row", xml_text(row.name));
    for (const std::string& cell : row.cells)
      table +=
          head ? fmt::format("<th scope=\"col\">{}</th>", xml_text(cell)) : fmt::format("<td>{}</td>", html_text(cell));
    table += "</tr>\n";
  }
  return table + "</table></div>\n";
}

std::string html_figure(const std::string& content, std::string_view caption) {
  return fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n", content, xml_text(caption));
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
      language.name(), xml_text(title), kStyle, xml_text(title), body);
}

}  // namespace maki
