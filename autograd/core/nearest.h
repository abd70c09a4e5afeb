// Finds the known name that an unknown word was probably meant to be, for error messages.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace maki {

/// The candidate with the smallest edit distance to `word` (Levenshtein 1966), the first of them if several are equally
/// near. Only these candidates are considered: those at a distance of at most 1 + n/3, rounded down, where n is the
/// length in bytes of the longer of the two, and those where one of the two is a prefix, at least three bytes long, of
/// the other. Returns an empty string if there are none or if `word` has more than 64 bytes. Case counts.
std::string nearest_name(std::string_view word, std::span<const std::string> candidates);

/// "; the nearest is NAME", to be appended to an error message, or an empty string if no candidate is near.
std::string nearest_hint(std::string_view word, std::span<const std::string> candidates);
/// The sentence for a word that is none of the names: "WHAT: must be one of A, B; got WORD; the nearest is A".
std::string unknown_name(std::string_view what, std::string_view word, std::span<const std::string> names);

}  // namespace maki
