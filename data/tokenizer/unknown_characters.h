// Handles characters of a text that are not in the vocabulary.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace maki {

/// How often characters occur that a vocabulary lacks, as a reader finds them. `lacking` are those of a normalized
/// text, and `written` all characters of the text: instead of the former, those of the latter whose own normal forms
/// contain them. What only a combination of characters becomes stays.
std::map<char32_t, std::int64_t> as_written(std::map<char32_t, std::int64_t> lacking,
                                            const std::map<char32_t, std::int64_t>& written, Normalization form);

/// What to do with characters that the vocabulary lacks: reject the text, leave them out, or replace each of them;
/// `refuse` rejects the text where nobody can choose another policy, which an error therefore does not advise.
enum class Unknown : std::uint8_t { error, skip, replace, refuse };

/// The policy named "error", "skip" or "replace". Throws Error for any other name.
Unknown parse_unknown_policy(const std::string& name);

/// Text that a tokenizer can encode. It may be moved, but not copied: `pieces` of a copy would refer to `changed` of
/// the original.
struct KnownText {
  std::vector<std::string_view> pieces;  ///< the given ones; those with unknown characters are views of `changed`
  std::vector<std::string> changed;      ///< normalized, if the tokenizer normalizes
  std::int64_t unknown = 0;              ///< number of characters that were left out or replaced
  std::string replacement;               ///< what replaces them; empty if they were left out

  /// A message such as "3 characters that the vocabulary lacks were left out"; empty if there were none.
  std::string describe() const;
};

/// Prepares pieces of well-formed text for the tokenizer. Unknown::replace replaces each unknown character with the
/// first of U+FFFD, space and ? that is in the vocabulary. Throws CorpusError, listing the characters, if there are
/// unknown ones and the policy is Unknown::error or Unknown::refuse, or if they are to be replaced and the vocabulary
/// has none of the three. With a tokenizer that normalizes, the characters that are left out, replaced and counted are
/// those of the normalized text.
KnownText known_text(const Tokenizer& tokenizer, std::vector<std::string_view> pieces, Unknown policy);

}  // namespace maki
