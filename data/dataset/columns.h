// Checks of text in two columns that would be learned without an error, but was hardly meant as it is.
#pragma once

#include <string>
#include <vector>

#include "data/dataset/pairs.h"

namespace maki {

/// A file of lines: its name, and which of all lines is its first.
struct FileOfLines {
  std::string name;
  std::size_t first;
};

/// Throws CorpusError if the first line of a file reads like the header of a table, or if the columns of texts and
/// labels seem to be swapped: the labels are almost as many as the lines, and the texts few. Requires: there is a file,
/// and if there are lines, each file has one.
void check_columns(const std::vector<LinePair>& lines, PairKind kind, const std::vector<FileOfLines>& files);

/// How to write lines of JSON or CSV as two columns, to follow an error message: "; from JSON lines, …: jq -r …", with
/// the columns that it proposes and those from which a user can choose. Empty for a line that looks like neither.
std::string column_advice(std::string_view line, PairKind kind, const std::string& name);

}  // namespace maki
