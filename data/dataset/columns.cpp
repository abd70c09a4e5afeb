#include "data/dataset/columns.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>

#include "autograd/core/check.h"
#include "data/io/error.h"
#include "data/io/shell_quote.h"
#include "data/io/utf8.h"

namespace maki {
namespace {

// Words for a column of texts, of labels or of translations.
constexpr std::array<std::string_view, 24> kHeaderWords = {
    "text",     "texts",     "sentence", "sentences", "review", "comment", "content",     "message",
    "document", "input",     "source",   "src",       "label",  "labels",  "class",       "category",
    "tag",      "sentiment", "intent",   "topic",     "target", "output",  "translation", "tgt"};

bool is_header_word(std::string_view cell) {
  std::string word(cell);
  std::ranges::transform(word, word.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return std::ranges::find(kHeaderWords, word) != kHeaderWords.end();
}

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
        "{}: line 1 reads like a header ({}, {}), which would be learned like any other line; remove it with: "
        "tail -n +2 {} > ROWS, or if it is none, move it below another line",
        name, truncate_for_message(line.source), truncate_for_message(line.target), shell_quote(name));
  }
}

std::size_t distinct(const std::vector<LinePair>& lines, std::string_view LinePair::*side) {
  std::set<std::string_view> values;
  for (const LinePair& line : lines) values.insert(line.*side);
  return values.size();
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
      "{}: must have the text before the tab and its label after it; of {} lines, what is before the tab "
      "has {} different values and what is after it {}, so they seem to be swapped; to swap them: awk -F "
      "'\\t' -v OFS='\\t' '{{print $2, $1}}' {} > ROWS",
      name, lines.size(), texts, labels, shell_quote(name));
}

std::string column_advice(std::string_view line, PairKind kind, const std::string& name) {
  if (without_byte_order_mark(line).starts_with('{'))
    return fmt::format("; from JSON lines: jq -r '[.{}] | @tsv' {} > ROWS",
                       kind == PairKind::labels ? "text, .label" : "source, .target", shell_quote(name));
  if (name.ends_with(".csv") || name.ends_with(".CSV"))
    return fmt::format(
        "; from CSV: python3 -c \"import csv, sys; [print(*row[:2], sep='\\t') for row in csv.reader(sys.stdin)]\" < "
        "{} "
        "> ROWS",
        shell_quote(name));
  return "";
}

}  // namespace maki
