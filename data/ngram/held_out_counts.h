// What an n-gram count of a text would have counted without one of its parts. A model that learns how far to trust
// counts must not learn it from text that was counted: there the counts are almost always right.
//
// Thread safety: immutable; may be used by several threads at once.
#pragma once

#include <cstdint>
#include <vector>

#include "data/ngram/ngram_trie.h"
#include "data/tokenizer/tokens.h"

namespace maki {

/// The text is cut into this many parts of equal length. More of them would leave out less than the text that is
/// predicted later: tinyshakespeare has 1.458 nats per character with 10 parts after a minute, 1.490 if only the
/// predicted token itself is left out.
inline constexpr std::int64_t kHeldOutParts = 10;

class HeldOutCounts {
 public:
  /// The trie has counted these parts of the text and nothing else (NgramModel::counted()). Without part p, an n-gram
  /// is counted where its last token is in another part.
  HeldOutCounts(const NgramTrie& trie, TokenSpan text, const std::vector<TokenRange>& counted);

  /// The part that the token at this position belongs to. Requires: 0 <= position < tokens of the text.
  const HeldOutPart& part_of(std::int64_t position) const;

 private:
  std::int64_t tokens_;
  std::vector<HeldOutPart> parts_;
};

}  // namespace maki
