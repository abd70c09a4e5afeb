// The names of the values of an enum, as configuration files and options spell them.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/core/nearest.h"

namespace maki {

/// to_string() of every value.
template <class Enum, std::size_t N>
std::vector<std::string> names_of(const std::array<Enum, N>& values) {
  std::vector<std::string> names;
  for (const Enum value : values) names.emplace_back(to_string(value));
  return names;
}

/// The value whose to_string() is `name`. Throws Error, which lists all names and suggests the most similar one if any
/// is near (nearest_hint()), if there is none; `what` says what is being named.
template <class Enum, std::size_t N>
Enum value_named(std::string_view what, const std::array<Enum, N>& values, std::string_view name) {
  for (const Enum value : values) {
    if (name == to_string(value)) return value;
  }
  throw Error(unknown_name(what, name, names_of(values)));
}

}  // namespace maki
