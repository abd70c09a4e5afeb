// What a verb reports: an object of JSON for programs, and lines of text for people.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/tensor.h"
#include "train/loop/eval_report.h"

namespace maki {

using Json = nlohmann::ordered_json;
/// Its floats are printed with as few digits as read back to the same float32.
using FloatJson =
    nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool, std::int64_t, std::uint64_t, float>;

/// JSON in one line, or with each level indented by `indent` columns, and a newline. Bytes that are not UTF-8, as a
/// path may have, are replaced.
template <class AnyJson>
std::string json_text(const AnyJson& json, int indent = -1) {
  return json.dump(indent, ' ', false, AnyJson::error_handler_t::replace) + '\n';
}
/// The first columns of each row of a tensor; null for an empty handle.
FloatJson rows_json(const Tensor& x, std::int64_t columns = std::numeric_limits<std::int64_t>::max());
/// The facts of all lines in one object.
Json to_json(const std::vector<ReportLine>& lines);

/// Writes a result to stdout. Throws std::system_error if it cannot be written; what is still buffered can fail later.
void print_result(std::string_view text);
/// Writes what is said beside a file that was written, whose path is `out`: to stdout, or if that is the file, which
/// must stay alone there, to stderr. Throws what print_result() throws.
void print_beside(const std::string& out, std::string_view text);
/// Writes what is still buffered. Throws std::system_error if it cannot be written.
void flush_results();

/// Facts in the order in which they are shown.
class Report {
 public:
  /// A fact for programs.
  Report& add(const std::string& key, Json value);
  /// A line for people: the text in a column of its own, with its label before it, which may be empty.
  Report& line(std::string label, std::string text);
  /// A line or several for people, without a label and from the first column on.
  Report& text(std::string text);
  /// A fact for both.
  Report& add(const std::string& key, Json value, std::string label, std::string text);
  Report& add(const std::vector<ReportLine>& lines);

  /// The facts are about a file that was written to this path: see print_beside().
  Report& beside(std::string out);
  /// Prints the JSON with `indent`, or the lines, to stdout. Throws what print_result() throws.
  void print(bool json, int indent = 2) const;

 private:
  Json facts_ = Json::object();
  std::vector<std::pair<std::optional<std::string>, std::string>> lines_;
  std::string out_;
};

}  // namespace maki
