// A terminal of so many columns, as far as maki uses one: what stands on it after the program's output.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "data/io/utf8.h"

namespace maki::tests {

class Screen {
 public:
  explicit Screen(std::size_t columns) : columns_(columns) {}

  /// Throws std::runtime_error for a control sequence that maki is not known to use.
  void show(std::string_view text) {
    while (!text.empty()) {
      const char first = text.front();
      if (first == '\033') {
        control(text);
      } else if (first == '\r') {
        column_ = 0;
        text.remove_prefix(1);
      } else if (first == '\n') {
        next_row();
        text.remove_prefix(1);
      } else {
        put(next_code_point(text));
      }
    }
  }

  /// From the first to the last, without spaces at the end.
  std::vector<std::string> rows() const {
    std::vector<std::string> all;
    for (std::u32string row : rows_) {
      row.resize(row.find_last_not_of(U' ') + 1);
      std::string text;
      for (const char32_t c : row) append_utf8(text, c);
      all.push_back(text);
    }
    return all;
  }
  /// How many times a character did not fit into its row.
  int wraps() const { return wraps_; }

 private:
  void next_row() {
    column_ = 0;
    if (++row_ == rows_.size()) rows_.emplace_back();
  }
  void put(char32_t c) {
    if (column_ == columns_) {
      ++wraps_;
      next_row();
    }
    rows_[row_].resize(std::max(rows_[row_].size(), column_ + 1), U' ');
    rows_[row_][column_++] = c;
  }
  void control(std::string_view& text) {
    const std::size_t end = text.find_first_of("AKJ", 2);
    if (!text.starts_with("\033[") || end == std::string_view::npos)
      throw std::runtime_error("unknown control sequence");
    const std::string number(text.substr(2, end - 2));
    if (text[end] == 'A') {
      row_ -= std::min<std::size_t>(row_, std::stoul(number));
    } else {
      if (!number.empty()) throw std::runtime_error("unknown control sequence");
      rows_[row_].resize(std::min(rows_[row_].size(), column_));
      if (text[end] == 'J') rows_.resize(row_ + 1);
    }
    text.remove_prefix(end + 1);
  }

  std::size_t columns_, row_ = 0, column_ = 0;
  std::vector<std::u32string> rows_{1};
  int wraps_ = 0;
};

}  // namespace maki::tests
