// Unicode normalization forms (Unicode Standard Annex 15), by utf8proc: characters that can be written in several ways,
// such as é as one code point or two, become the same code points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace maki {

/// None; NFC, which keeps the look of a text; or NFKC, which also replaces compatibility characters, such as full-width
/// letters, half-width katakana and ligatures, and so cannot be undone.
enum class Normalization : std::uint8_t { none, nfc, nfkc };
inline constexpr std::size_t kNormalizations = 3;  ///< how many there are

std::vector<std::string> normalization_names();
/// Throws CorpusError for any other name.
Normalization parse_normalization(std::string_view name);
std::string to_string(Normalization form);

/// The normalized text, which may be longer; with `none`, the text. Bytes that are not UTF-8 stay as they are. Throws
/// CorpusError if utf8proc refuses the text, for which no case is known.
std::string normalize(std::string_view text, Normalization form);

/// The first position from `at` on where well-formed text can be cut so that the normal forms of both parts, one after
/// the other, are that of the text: not before a mark, such as an accent, which may be combined with the letter before
/// it. `at` itself with `none`, and at the beginning of the text. Requires: a character begins or the text ends at
/// `at`.
std::size_t next_normal_cut(std::string_view text, std::size_t at, Normalization form);

}  // namespace maki
