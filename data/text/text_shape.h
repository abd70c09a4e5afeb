// Text as lines, and how to recognise text whose lines are records (JSON objects, or the rows of a table) or separate
// documents.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace maki {

/// The lines of a text, without their ends (a newline, or a carriage return and a newline). A text that does not end
/// with a newline has one line more than newlines.
std::vector<std::string_view> lines_of(std::string_view text);
/// How many tabs every line has; 0 unless there are at least two lines and all have the same number.
std::size_t tabs_per_line(const std::vector<std::string_view>& lines);

/// Appends a message for a user if text that is read as running text is a list of records: its lines are JSON objects,
/// have tabs or are CSV, or it is a list of objects in JSON; or if a special token, such as <|endoftext|>, is a line of
/// its own more than once. The message says which option or command reads them as such. Looks at the first 64 KiB.
/// `name` is the name of the file.
void note_on_records(std::string_view text, const std::string& name, std::vector<std::string>& notes);

}  // namespace maki
