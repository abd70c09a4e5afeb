// The nearest of several names, for messages about a word that is none of them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace maki {

/// The candidate that `word` may have been meant for: with the smallest edit distance (Levenshtein 1966), the first of
/// several, among those that differ in little (a third of their length and one) or by what is missing at the end. Empty
/// when there is none, and for a word of more than 64 bytes.
std::string nearest_name(std::string_view word, std::span<const std::string> candidates);

/// "; the nearest is NAME", or nothing: the end of a sentence.
std::string nearest_hint(std::string_view word, std::span<const std::string> candidates);

}  // namespace maki
