// Kinds of things as rows of a table: their names for help, the row of a name, and one sentence for any other word.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/core/nearest.h"

namespace maki {

/// Rows with a member `name`, or pointers to such, in the order in which help lists them; `what` is what they are.
/// Refers to an array, which must outlive it.
template <class Row>
class Table {
  using Element = std::remove_pointer_t<Row>;

 public:
  template <std::size_t N>
  constexpr Table(const char* what, const Row (&rows)[N]) : what_(what), rows_(rows) {}

  constexpr const Row* begin() const { return rows_.data(); }
  constexpr const Row* end() const { return rows_.data() + rows_.size(); }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Row& row : rows_) names.emplace_back(element(row).name);
    return names;
  }
  /// Null if no row has this name.
  const Element* find(std::string_view name) const {
    for (const Row& row : rows_) {
      if (name == element(row).name) return &element(row);
    }
    return nullptr;
  }
  /// The row of this name. Throws E, which lists all names and suggests the nearest, if there is none.
  template <class E = Error>
  const Element& row(std::string_view name) const {
    const Element* const found = find(name);
    if (found == nullptr) throw E(unknown_name(what_, name, names()));
    return *found;
  }
  /// "name: help; name: help", for rows with a member `help`.
  std::string help() const {
    std::string text;
    for (const Row& row : rows_)
      text += (text.empty() ? "" : "; ") + std::string(element(row).name) + ": " + element(row).help;
    return text;
  }

 private:
  static constexpr const Element& element(const Row& row) {
    if constexpr (std::is_pointer_v<Row>) {
      return *row;
    } else {
      return row;
    }
  }

  const char* what_;
  std::span<const Row> rows_;
};

}  // namespace maki
