// Texts with characters that a vocabulary lacks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"

namespace maki {

/// What to do with characters that the vocabulary lacks: refuse the text, leave them out, or put another character in
/// the place of each.
enum class Unknown : std::uint8_t { error, skip, replace };

/// "error", "skip" or "replace". Throws Error for another name.
Unknown unknown_named(const std::string& name);

struct KnownText {
  std::vector<std::string_view> pieces;  ///< those that were given, or views of `changed`
  std::vector<std::string> changed;
  std::int64_t unknown = 0;  ///< characters that were left out or replaced
  std::string replacement;   ///< what stands for them now; empty when they were left out

  /// "3 characters that the vocabulary lacks were left out"; empty where there were none.
  std::string describe() const;
};

/// Pieces of text as the tokenizer can encode them. In the place of a character comes the first of U+FFFD, a space and
/// ? that the vocabulary has. Throws CorpusError, listing the characters, when they are not accepted, and when they are
/// to be replaced and it has none of the three.
KnownText known_text(const Tokenizer& tokenizer, std::vector<std::string_view> pieces, Unknown policy);

}  // namespace maki
