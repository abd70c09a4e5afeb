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

/// The text is cut into this many parts of almost equal length. With fewer, the counts of training know much less than
/// those of evaluation: after 784 steps of 4 x 128, tinyshakespeare has 1.480 nats per character with 4 parts, 1.460
/// with 10 and 1.459 with 20.
inline constexpr std::int64_t kHeldOutParts = 10;

/// One of so many parts of a text. Requires: 0 <= part < parts.
constexpr TokenRange held_out_range(std::int64_t part, std::int64_t tokens, std::int64_t parts = kHeldOutParts) {
  return {part * tokens / parts, (part + 1) * tokens / parts};
}
/// The part that the token at a position belongs to. Requires: 0 <= position < tokens.
constexpr std::int64_t held_out_part(std::int64_t position, std::int64_t tokens, std::int64_t parts = kHeldOutParts) {
  return ((position + 1) * parts - 1) / tokens;
}

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
