// The nearest of several names, for messages that say "did you mean …".
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace maki {

/// The candidate with the smallest edit distance (Levenshtein 1966) to `word`, the first of several; empty when there
/// is none.
std::string nearest_name(std::string_view word, std::span<const std::string> candidates);

}  // namespace maki
