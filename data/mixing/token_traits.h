// What the contexts of ContextMixer have to know about each token of a vocabulary.
//
// Thread safety: immutable; may be used by several threads at once.
#pragma once

#include <cstdint>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace maki {

/// Kinds of characters. What is not well-formed UTF-8 is a byte of a character that is cut into tokens: a letter.
enum class CharacterKind : std::uint8_t {
  newline = 1,  // 0 is left for what is before the beginning of a text
  space,
  upper,
  lower,
  hiragana,
  katakana,
  letter,  // any other, such as a kanji
  digit,   // or a mark
  other,
  comma,
  stop
};

struct TokenTraits {
  CharacterKind kind;  ///< of the last character
  bool begins_in_word, ends_in_word;
  bool ends_line;
  /// Of the letters, digits and marks in lower case, or if there are none, of all characters: the same for "The", "the"
  /// and " the".
  std::uint64_t folded;
};

/// [id]
std::vector<TokenTraits> traits_of_tokens(const Tokenizer& tokenizer);

/// All ids in the order of their bytes, in which capitals, the characters of a script and words that begin alike are
/// neighbours.
std::vector<std::int32_t> ids_by_bytes(const Tokenizer& tokenizer);

}  // namespace maki
