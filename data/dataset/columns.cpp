#include "data/dataset/columns.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

#include "autograd/core/check.h"
#include "data/io/error.h"
#include "data/io/shell_quote.h"
#include "data/io/utf8.h"

namespace maki {
namespace {

// Words for a column of texts, and for one of labels or of translations.
constexpr std::array<std::string_view, 12> kTextWords = {"text",     "texts",   "sentence", "sentences",
                                                         "review",   "comment", "content",  "message",
                                                         "document", "input",   "source",   "src"},
                                           kTargetWords = {"label",  "labels",    "class",       "category",
                                                           "tag",    "sentiment", "intent",      "topic",
                                                           "target", "output",    "translation", "tgt"};

bool is_among(std::span<const std::string_view> words, std::string_view cell) {
  std::string word(cell);
  std::ranges::transform(word, word.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return std::ranges::find(words, word) != words.end();
}

bool is_header_word(std::string_view cell) { return is_among(kTextWords, cell) || is_among(kTargetWords, cell); }

// Of two files, both may begin with a mark.
LinePair without_byte_order_marks(const LinePair& line) {
  return {without_byte_order_mark(line.source), without_byte_order_mark(line.target)};
}

// A pair that reads like a header may be a translation, so both sides must.
bool reads_like_header(const LinePair& first, PairKind kind) {
  const LinePair line = without_byte_order_marks(first);
  const bool source = is_header_word(line.source), target = is_header_word(line.target);
  return kind == PairKind::translation ? source && target && line.source != line.target : source || target;
}

// A label of a header occurs nowhere else than in headers.
bool is_header(const LinePair& line, const std::vector<LinePair>& lines, PairKind kind,
               const std::vector<FileOfLines>& files) {
  if (!reads_like_header(line, kind)) return false;
  if (kind == PairKind::translation) return true;
  const auto is_alike = [&](const FileOfLines& file) {
    const LinePair& first = lines[file.first];
    return first.target == line.target && reads_like_header(first, kind);
  };
  return std::ranges::count(lines, line.target, &LinePair::target) == std::ranges::count_if(files, is_alike);
}

void refuse_headers(const std::vector<LinePair>& lines, PairKind kind, const std::vector<FileOfLines>& files) {
  for (const auto& [name, first] : files) {
    const LinePair line = without_byte_order_marks(lines[first]);
    check<CorpusError>(
        !is_header(lines[first], lines, kind, files),
        "{0}: line 1 reads like a header ({1}, {2}), which would be learned like any other line; remove it with: "
        "tail -n +2 {3} > {3}.new, or if it is none, move it below another line",
        name, truncate_for_message(line.source), truncate_for_message(line.target), shell_quote(name));
  }
}

std::size_t distinct(const std::vector<LinePair>& lines, std::string_view LinePair::*side) {
  std::set<std::string_view> values;
  for (const LinePair& line : lines) values.insert(line.*side);
  return values.size();
}

// Which columns to propose for the texts and for what belongs to them: by their names, else the first two.
std::pair<std::size_t, std::size_t> likely_columns(const std::vector<std::string>& names) {
  const auto find = [&](std::span<const std::string_view> words) {
    return static_cast<std::size_t>(
        std::ranges::find_if(names, [&](const std::string& name) { return is_among(words, name); }) - names.begin());
  };
  const std::size_t text = find(kTextWords), target = find(kTargetWords);
  return text < names.size() && target < names.size() ? std::pair(text, target)
                                                      : std::pair<std::size_t, std::size_t>(0, 1);
}

// The cells of a line of CSV. A comma in quotes divides them as well: enough for the names of a header.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',') {
      cells.emplace_back();
    } else if (c != '"' && c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

// The names of a JSON object that need no quotes in jq, in their order, or what is usual if there are fewer than two.
std::vector<std::string> fields_of(std::string_view line, PairKind kind) {
  const auto object = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> names;
  if (object.is_object()) {
    for (const auto& [name, value] : object.items()) names.push_back(name);
  }
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  std::erase_if(names, [&](const std::string& name) {
    return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 ||
           !std::ranges::all_of(name, is_word);
  });
  if (names.size() >= 2) return names;
  if (kind == PairKind::labels) return {"text", "label"};
  return {"source", "target"};
}

}  // namespace

void check_columns(const std::vector<LinePair>& lines, PairKind kind, const std::vector<FileOfLines>& files) {
  constexpr std::size_t kMinLinesToJudge = 10;  // labels of fewer lines may all differ by chance
  // Columns seem to be swapped where most labels differ and a text has at least this many on average: real texts rarely
  // repeat.
  constexpr std::size_t kLabelsPerTextIfSwapped = 4;
  if (lines.size() < 2) return;
  refuse_headers(lines, kind, files);
  if (kind == PairKind::translation || lines.size() < kMinLinesToJudge) return;
  const std::string& name = files.front().name;
  const std::size_t texts = distinct(lines, &LinePair::source), labels = distinct(lines, &LinePair::target);
  check<CorpusError>(
      labels * 2 <= lines.size() || texts * kLabelsPerTextIfSwapped > labels,
      "{0}: must have the text before the tab and its label after it; of {1} lines, what is before the tab "
      "has {2} different values and what is after it {3}, so they seem to be swapped; to swap them: awk -F "
      "'\\t' -v OFS='\\t' '{{print $2, $1}}' {4} > {4}.new",
      name, lines.size(), texts, labels, shell_quote(name));
}

std::string column_advice(std::string_view line, PairKind kind, const std::string& name) {
  const std::string_view first = without_byte_order_mark(line);
  const std::string file = shell_quote(name);
  const char* const both = kind == PairKind::labels ? "the text and its label" : "the source and its target";
  if (first.starts_with('{')) {
    const std::vector<std::string> fields = fields_of(first, kind);
    const auto [text, target] = likely_columns(fields);
    return fmt::format(
        "; from JSON lines, if {0} are {1} and {2} (of {3}; else name others): jq -r '[.{1}, .{2}] | @tsv' {4} > "
        "{4}.new",
        both, fields[text], fields[target], truncate_for_message(fmt::format("{}", fmt::join(fields, ", "))), file);
  }
  if (!name.ends_with(".csv") && !name.ends_with(".CSV")) return "";
  const std::vector<std::string> cells = cells_of(first);
  if (cells.size() < 2) return "";
  const auto [text, target] = likely_columns(cells);
  return fmt::format(
      "; from CSV, if {0} are columns {1} and {2}, counted from 0 (of {3}; else put other numbers): python3 -c "
      "\"import csv, sys; [print(row[{1}], row[{2}], sep='\\t') for row in csv.reader(sys.stdin)]\" < {4} > {4}.new",
      both, text, target, truncate_for_message(first), file);
}

}  // namespace maki
