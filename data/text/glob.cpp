#include "data/text/glob.h"

#include <optional>
#include <string>

#include "data/io/utf8.h"

namespace maki {
namespace {

// The code points of a text. Bytes that are not UTF-8 become U+FFFD.
std::u32string characters_of(std::string_view text) {
  const std::string valid = replace_invalid_utf8(text);
  std::u32string characters;
  for (std::string_view left = valid; !left.empty();) characters += next_code_point(left);
  return characters;
}

// Parses the set "[...]" at the beginning of `pattern`; nullopt if it is not closed.
struct Set {
  bool holds;        // whether it matches c
  std::size_t size;  // its length in the pattern
};
std::optional<Set> read_set(std::u32string_view pattern, char32_t c) {
  std::size_t at = 1;
  const bool negated = at < pattern.size() && (pattern[at] == U'!' || pattern[at] == U'^');
  if (negated) ++at;
  bool holds = false;
  for (bool first = true; at < pattern.size(); first = false) {
    if (pattern[at] == U']' && !first) return Set{holds != negated, at + 1};
    const bool range = at + 2 < pattern.size() && pattern[at + 1] == U'-' && pattern[at + 2] != U']';
    const char32_t low = pattern[at], high = range ? pattern[at + 2] : low;
    holds = holds || (c >= low && c <= high);
    at += range ? 3 : 1;
  }
  return std::nullopt;
}

}  // namespace

bool matches_glob(std::string_view pattern_text, std::string_view name_text) {
  const std::u32string pattern = characters_of(pattern_text), name = characters_of(name_text);
  // Greedy matching with backtracking to the last *: `star` is its position in the pattern, and it currently matches
  // the name up to `reached`.
  std::size_t p = 0, n = 0, star = std::u32string::npos, reached = 0;
  while (n < name.size()) {
    std::size_t consumed = 0;  // characters of the pattern that match one character of the name
    if (p < pattern.size() && pattern[p] == U'*') {
      star = p++;
      reached = n;
      continue;
    }
    if (p < pattern.size() && pattern[p] == U'[') {
      const auto set = read_set(std::u32string_view(pattern).substr(p), name[n]);
      consumed = set ? (set->holds ? set->size : 0) : (name[n] == U'[' ? 1 : 0);
    } else if (p < pattern.size() && (pattern[p] == U'?' || pattern[p] == name[n])) {
      consumed = 1;
    }
    if (consumed > 0) {
      p += consumed;
      ++n;
    } else if (star != std::u32string::npos) {
      p = star + 1;
      n = ++reached;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == U'*') ++p;
  return p == pattern.size();
}

}  // namespace maki
