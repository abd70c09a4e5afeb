// What programs read of a report: named values, as in a JSON object.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace maki {

/// A name and a value: a number, a text, or further facts. Those have names if they belong together like the members of
/// an object, and empty names if they are the entries of a list.
struct Fact {
  using List = std::vector<Fact>;

  template <std::integral T>
  Fact(std::string its_name, T number) : name(std::move(its_name)), value(static_cast<std::int64_t>(number)) {}
  template <std::floating_point T>
  Fact(std::string its_name, T number) : name(std::move(its_name)), value(static_cast<double>(number)) {}
  template <std::convertible_to<std::string> T>
  Fact(std::string its_name, T text) : name(std::move(its_name)), value(std::string(std::move(text))) {}
  Fact(std::string its_name, List list) : name(std::move(its_name)), value(std::move(list)) {}
  /// A list of values.
  template <class T>
  Fact(std::string its_name, const std::vector<T>& values) : name(std::move(its_name)), value(List()) {
    for (const T& each : values) std::get<List>(value).push_back(Fact("", each));
  }

  std::string name;
  std::variant<std::int64_t, double, std::string, List> value;
};

/// In the order in which they are shown.
using Facts = Fact::List;

}  // namespace maki
