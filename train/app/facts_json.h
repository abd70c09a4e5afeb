// Facts of a report as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "train/loop/eval_report.h"

namespace maki {

nlohmann::ordered_json to_json(const Facts& facts);
/// The facts of all lines in one object.
nlohmann::ordered_json to_json(const std::vector<ReportLine>& lines);

}  // namespace maki
