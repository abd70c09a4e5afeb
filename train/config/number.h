// Parsing of the numbers in options and configurations: decimal, finite and within a range, with the same error
// messages everywhere.
#pragma once

#include <cstdint>
#include <string_view>

namespace maki {

/// Upper limits: of counts, of threads (that of set_threads()), and of seeds (a double holds integers up to 2^53
/// = 9.007e15 exactly).
inline constexpr double kMaxCount = 1e9, kMaxThreads = 1024, kMaxSeed = 9e15;

/// Parses all of `text` as a decimal number in [low, high], with nothing before or after it. Throws Error, whose
/// message begins with `name`.
std::int64_t parse_integer(std::string_view name, std::string_view text, double low, double high);
double parse_number(std::string_view name, std::string_view text, double low, double high);

}  // namespace maki
