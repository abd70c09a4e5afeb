#include "data/text/text_shape.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "data/io/shell_quote.h"
#include "data/io/utf8.h"

namespace maki {
namespace {

using nlohmann::json;

constexpr std::size_t kExaminedBytes = 1 << 16;  // room for kExaminedLines of most texts
constexpr std::size_t kExaminedLines = 20;       // so many records do not look alike by chance
constexpr std::size_t kMinLines = 2;             // one line alone may be anything

// The complete lines of the examined bytes that are not blank.
std::vector<std::string_view> examined_lines(std::string_view text) {
  std::vector<std::string_view> lines = lines_of(text.substr(0, kExaminedBytes));
  if (text.size() > kExaminedBytes && !lines.empty()) lines.pop_back();
  std::erase_if(lines, [](std::string_view line) { return line.find_first_not_of(" \t") == std::string_view::npos; });
  return lines;
}

// The fields that are strings in every one of these JSON objects, those with the most text first; nullopt if a line is
// no object.
std::optional<std::vector<std::string>> text_fields(const std::vector<std::string_view>& lines) {
  struct Strings {
    std::size_t count = 0, bytes = 0;
  };
  std::map<std::string, Strings> fields;
  for (const std::string_view line : lines) {
    const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) return std::nullopt;
    for (const auto& [name, value] : object.items()) {
      if (!value.is_string()) continue;
      ++fields[name].count;
      fields[name].bytes += value.get_ref<const std::string&>().size();
    }
  }
  std::vector<std::string> names;
  for (const auto& [name, strings] : fields) {
    if (strings.count == lines.size()) names.push_back(name);
  }
  std::ranges::stable_sort(names, std::greater<>(), [&](const std::string& name) { return fields[name].bytes; });
  return names;
}

std::string describe_json(const std::vector<std::string_view>& lines) {
  const auto fields = lines.front().starts_with('{') ? text_fields(lines) : std::nullopt;
  if (!fields) return "";
  if (fields->empty()) return "every line is a JSON object, but none of its fields is a text; write the text to a file";
  const bool usual = std::ranges::find(*fields, "text") != fields->end();
  return fmt::format(
      "every line is a JSON object; to read the text in one of its fields: `json_field` {} (texts are in {})",
      shell_quote(usual ? "text" : fields->front()), fmt::join(*fields, ", "));
}

// A list of objects is one value, which need not have lines.
bool is_json_list(std::string_view text, const std::string& name) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (!name.ends_with(".json") || first == std::string_view::npos || text[first] != '[') return false;
  const std::size_t second = text.find_first_not_of(kBlanks, first + 1);
  return second != std::string_view::npos && text[second] == '{';
}

std::string describe_json_list(const std::string& name) {
  return fmt::format(
      "is a list in JSON, whose brackets and names are learned as well; to read the text in a field of its objects, "
      "write them in lines with: jq -c '.[]' {0} > {0}.new, and read these with `json_field`",
      shell_quote(name));
}

std::string describe_table(const std::vector<std::string_view>& lines, const std::string& name) {
  const auto has_comma = [](std::string_view line) { return line.find(',') != std::string_view::npos; };
  if ((name.ends_with(".csv") || name.ends_with(".CSV")) && std::ranges::all_of(lines, has_comma)) {
    return "is a table (CSV), whose commas and quotes are learned as well; write its text alone to a file, or in each "
           "line a text, a tab and its label, for `model` encoder `task` classify";
  }
  const std::size_t tabs = tabs_per_line(lines);
  if (tabs == 1)
    return "every line has one tab; to learn the labels of texts: `model` encoder `task` classify; to translate: "
           "`model` seq2seq";
  return tabs == 0 ? ""
                   : fmt::format("is a table, with {} tabs in every line; cut -f 1 prints one of its columns", tabs);
}

// Whether a line is a special token, such as <|endoftext|>.
bool is_special_token(std::string_view line) {
  constexpr std::string_view kBegin = "<|", kEnd = "|>";
  constexpr std::size_t kMaxBytes = 64;
  if (line.size() > kMaxBytes || !line.starts_with(kBegin) || !line.ends_with(kEnd)) return false;
  const auto is_part = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-'; };
  line.remove_prefix(kBegin.size());
  return line.size() > kEnd.size() && std::ranges::all_of(line.substr(0, line.size() - kEnd.size()), is_part);
}

// Any other line that recurs may belong to the text.
std::string describe_separator(const std::vector<std::string_view>& lines) {
  std::map<std::string_view, std::size_t> counts;
  for (std::string_view line : lines) {
    line.remove_suffix(line.size() - 1 - line.find_last_not_of(" \t"));
    if (!is_special_token(line) || ++counts[line] < kMinLines) continue;
    return fmt::format("has lines that are {}; to read what stands between them as documents: `document_separator` {}",
                       line, shell_quote(std::string(line)));
  }
  return "";
}

}  // namespace

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t at = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(at + 1, text.size()));
  }
  return lines;
}

std::size_t tabs_per_line(const std::vector<std::string_view>& lines) {
  if (lines.size() < kMinLines) return 0;
  const auto tabs = [](std::string_view line) { return std::ranges::count(line, '\t'); };
  const auto first = tabs(lines.front());
  const bool alike = std::ranges::all_of(lines, [&](std::string_view line) { return tabs(line) == first; });
  return alike ? static_cast<std::size_t>(first) : 0;
}

void note_on_records(std::string_view text, const std::string& name, std::vector<std::string>& notes) {
  text = without_byte_order_mark(text);
  if (is_json_list(text, name)) return notes.push_back(fmt::format("{}: {}", name, describe_json_list(name)));
  const std::vector<std::string_view> lines = examined_lines(text);
  if (lines.size() < kMinLines) return;
  std::vector<std::string_view> first = lines;
  first.resize(std::min(kExaminedLines, lines.size()));
  std::string what = describe_json(first);
  if (what.empty()) what = describe_table(first, name);
  if (what.empty()) what = describe_separator(lines);
  if (!what.empty()) notes.push_back(fmt::format("{}: {}", name, what));
}

}  // namespace maki
