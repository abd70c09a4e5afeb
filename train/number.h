// Numbers as they are given to an option or a configuration: decimal, finite, within a range. One sentence a mistake,
// whoever asks.
#pragma once

#include <cstdint>
#include <string_view>

namespace maki {

/// Of counts, and of what OpenMP and a double's 53 bits can take.
inline constexpr double kMostCount = 1e9, kMostThreads = 1024, kMostSeed = 9e15;

/// The whole of `text` as a number in [low, high]; nothing before it, nothing behind it, no other base. Throws, naming
/// `name`.
std::int64_t whole_number(std::string_view name, std::string_view text, double low, double high);
double decimal_number(std::string_view name, std::string_view text, double low, double high);

}  // namespace maki
