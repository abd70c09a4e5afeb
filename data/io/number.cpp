#include "data/io/number.h"

#include <charconv>
#include <cmath>
#include <locale>
#include <sstream>
#include <system_error>
#include <type_traits>
#include <version>

#include "autograd/core/check.h"

namespace maki {
namespace {

// Reads all of a text as a number, without spaces or a plus sign. result_out_of_range: it is one that Number cannot
// hold.
template <class Number>
std::errc read_number(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return end == text.data() + text.size() ? error : std::errc::invalid_argument;
}
#if !defined(__cpp_lib_to_chars)
// A libc++ that has from_chars() for whole numbers alone.
std::errc read_number(std::string_view text, double& value) {
  std::istringstream stream{std::string(text)};
  stream.imbue(std::locale::classic());
  const bool decimal = text.find_first_not_of("0123456789.eE+-") == std::string_view::npos && !text.starts_with('+');
  const bool whole = decimal && stream >> value && stream.peek() == std::istringstream::traits_type::eof();
  return whole ? std::errc() : std::errc::invalid_argument;
}
#endif

template <class Number>
Number parse(std::string_view name, std::string_view text, Number low, Number high, const char* what) {
  Number value{};
  const std::errc error = read_number(text, value);
  const bool beyond = std::is_integral_v<Number> && error == std::errc::result_out_of_range;
  check(beyond || (error == std::errc() && std::isfinite(static_cast<double>(value))), "{}: must be {}; got {}", name,
        what, truncate_for_message(text));
  check(!beyond && value >= low && value <= high, "{}: must be between {} and {}; got {}", name, low, high,
        truncate_for_message(text));
  return value;
}

}  // namespace

std::int64_t parse_integer(std::string_view name, std::string_view text, double low, double high) {
  return parse(name, text, static_cast<std::int64_t>(low), static_cast<std::int64_t>(high), "a whole number");
}

double parse_number(std::string_view name, std::string_view text, double low, double high) {
  return parse(name, text, low, high, "a finite decimal number");
}

std::string short_number(double number) {
  std::string text = fmt::format("{}", number);
  const std::size_t exponent = text.find('e');
  if (exponent == std::string::npos) return text;
  text.erase(exponent + 2, text.find_first_not_of('0', exponent + 2) - exponent - 2);  // 1e-05
  if (text[exponent + 1] == '+') text.erase(exponent + 1, 1);
  return text;
}

std::string with_separators(std::int64_t number) {
  const std::string digits = fmt::format("{}", number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::size_t left = digits.size() - i;
    if (i > 0 && left % 3 == 0 && digits[i - 1] != '-') text += ',';
    text += digits[i];
  }
  return text;
}

std::string milliseconds_text(double seconds) {
  constexpr double kFourDigits = 999.5;  // from here on, three digits would be written with an exponent
  const double number = 1e3 * seconds;
  return number < kFourDigits ? fmt::format("{:.3g} ms", number) : with_separators(std::llround(number)) + " ms";
}

std::string pluralize(std::int64_t number, const std::string& noun) {
  return fmt::format("{} {}{}", with_separators(number), noun, number == 1 ? "" : noun.ends_with("ch") ? "es" : "s");
}

}  // namespace maki
