// Numbers in text: parsing those in options and configurations (decimal, finite and within a range, with the same error
// messages everywhere), and formatting them for display.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace maki {

/// Upper limits of what users give: of counts, more than any run needs, a product of two of which fits into 64 bits; of
/// threads, that of set_threads(); of seeds, because a double holds integers up to 2^53 = 9.007e15 exactly.
inline constexpr double kMaxCount = 1e9, kMaxThreads = 1024, kMaxSeed = 9e15;

/// Parses all of `text` as a decimal number in [low, high], with nothing before or after it: no spaces and no plus
/// sign. parse_number() accepts an exponent (1e-3). Throws Error, whose message begins with `name`.
std::int64_t parse_integer(std::string_view name, std::string_view text, double low, double high);
double parse_number(std::string_view name, std::string_view text, double low, double high);

/// The shortest decimal text that is parsed back to the same number, as people write it: "0.001", "1e-5", "10000".
std::string short_number(double number);
/// A number with thousands separators: "1,115,394".
std::string with_separators(std::int64_t number);
/// A time for display, in milliseconds of three digits or more: "2.76 ms", "84,375 ms".
std::string milliseconds_text(double seconds);
/// A number with its noun, in the plural unless it is 1: "1 thread", "2,000 steps". The plural ends in s, and after
/// "ch" in es.
std::string pluralize(std::int64_t number, const std::string& noun);

}  // namespace maki
