// The style sheet of a report, which is embedded when maki is built.
#pragma once

#include <string_view>

namespace maki {

extern const std::string_view kReportStyle;

}  // namespace maki
