// What programs read of a report: named values, as in a JSON object.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace maki {

struct NamedFact;
/// In the order in which they are shown.
using Facts = std::vector<NamedFact>;

/// A value: a number, a text, a list of values, or named values. Converts from each of them.
struct Fact {
  using List = std::vector<Fact>;

  // NOLINTBEGIN(google-explicit-constructor)
  template <std::integral T>
  Fact(T number) : value(static_cast<std::int64_t>(number)) {}
  template <std::floating_point T>
  Fact(T number) : value(static_cast<double>(number)) {}
  template <std::convertible_to<std::string> T>
  Fact(T text) : value(std::string(std::move(text))) {}
  template <class T>
  Fact(const std::vector<T>& list) : value(List(list.begin(), list.end())) {}
  Fact(List list) : value(std::move(list)) {}
  Fact(Facts facts);
  // NOLINTEND(google-explicit-constructor)

  std::variant<std::int64_t, double, std::string, List, Facts> value;
};

struct NamedFact {
  std::string name;
  Fact value;
};

inline Fact::Fact(Facts facts) : value(std::move(facts)) {}

}  // namespace maki
