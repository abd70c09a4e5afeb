#include "autograd/core/nearest.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <numeric>
#include <utility>
#include <vector>

#include "autograd/core/check.h"

namespace maki {
namespace {

// Longer words are not compared: no known name is nearly that long, and the cost of a search grows with their length.
constexpr std::size_t kMaxWordBytes = 64;

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

// Whether one word begins with the other, of three bytes or more, or the edit distance is at most one more than a third
// of the longer one's length.
bool is_near(std::string_view a, std::string_view b) {
  const auto [least, most] = std::minmax({a.size(), b.size()});
  const bool is_prefix = least >= 3 && a.substr(0, least) == b.substr(0, least);
  return is_prefix || edit_distance(a, b) <= 1 + most / 3;
}

}  // namespace

std::string nearest_name(std::string_view word, std::span<const std::string> candidates) {
  std::string nearest;
  if (word.size() > kMaxWordBytes) return nearest;
  for (const std::string& candidate : candidates) {
    if (!is_near(word, candidate)) continue;
    if (nearest.empty() || edit_distance(word, candidate) < edit_distance(word, nearest)) nearest = candidate;
  }
  return nearest;
}

std::string nearest_hint(std::string_view word, std::span<const std::string> candidates) {
  const std::string nearest = nearest_name(word, candidates);
  return nearest.empty() ? "" : "; the nearest is " + nearest;
}

std::string unknown_name(std::string_view what, std::string_view word, std::span<const std::string> names) {
  return fmt::format("{}: must be one of {}; got {}{}", what, fmt::join(names, ", "), truncate_for_message(word),
                     nearest_hint(word, names));
}

}  // namespace maki
