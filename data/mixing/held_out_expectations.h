// What counts in many contexts (ContextMixer) expect in each place of a text if they have read the rest of it, but not
// the part that this place is in. A network that learns from a text can learn from them, too: they know what follows
// rare words, and unlike a network they know no more about this text than about others of its kind.
//
// Thread safety: immutable; may be used by several threads at once.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "data/mixing/context_mixer.h"
#include "data/ngram/held_out_counts.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/tokens.h"

namespace maki {

class HeldOutExpectations {
 public:
  static constexpr std::int64_t kMaxVocabulary = std::int64_t{1} << 16;

  /// Reads the text once for each of kHeldOutParts parts, which are shared among the threads; each thread takes up to
  /// 290 MB meanwhile. About 200 bytes per token are kept. Throws what reading the text throws, and std::bad_alloc.
  /// Requires: the tokenizer has at most kMaxVocabulary tokens, among them all of the text.
  HeldOutExpectations(const Tokenizer& tokenizer, TokenSpan text);

  /// About how many bytes the constructor takes for a text of so many tokens.
  static std::int64_t bytes_to_make(std::int64_t tokens, std::int64_t threads);

  /// The probability of each token in the place of the token at `position`, given those before it: out [V]. Their sum
  /// is 1, less at most 2^-16 for each token where all are expected. Requires: 0 <= position < tokens of the text.
  void probabilities(std::int64_t position, std::span<float> out) const;

 private:
  // What is expected in each place of a part.
  struct Part {
    std::vector<ExpectedToken> expected;
    std::vector<std::uint32_t> begin;  // where the expected tokens of each place begin; with the end of the last ones
  };

  void predict_part(std::int64_t index, const Tokenizer& tokenizer, std::span<const std::int64_t> joins,
                    std::span<const std::int32_t> ids, std::span<const std::int64_t> counts);

  std::int64_t tokens_;
  std::vector<float> shares_;  // of each token in the text
  std::array<Part, kHeldOutParts> parts_;
};

}  // namespace maki
