// A line of metrics.jsonl as it is read again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace maki {

struct MetricsLine {
  std::int64_t step = 0;
  std::string kind = {}, text = {};  ///< empty if the line has none
  std::map<std::string, double, std::less<>> numbers = {};
  /// The numbers in each field that is an array, in the order of the line; a name that occurs twice is there twice.
  std::vector<std::pair<std::string, std::vector<double>>> lists = {};

  /// nullopt if the line has no such number.
  std::optional<double> number(std::string_view name) const;
};

/// nullopt unless the line is a JSON object with a whole number `step` of at least 0. Takes time and memory in
/// proportion to the line, whatever it contains: other fields are not kept. If a name occurs twice, the last one holds.
std::optional<MetricsLine> read_metrics_line(std::string_view line);

}  // namespace maki
