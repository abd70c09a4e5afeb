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

#include "data/mixing/probable_nodes.h"
#include "data/mixing/token_code.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/tokens.h"

namespace maki {

class HeldOutExpectations {
 public:
  /// Networks learn as much from four parts of a text as from ten, and a little less from two
  /// (docs/decisions/085-counts-that-teach.md).
  static constexpr std::int64_t kParts = 4;

  /// Reads the text once for each of four parts, which are shared among the threads; each thread takes up to 380 MB
  /// meanwhile. About 200 to 400 bytes per token are kept. Throws what reading the text throws, and std::bad_alloc.
  /// Requires: the tokenizer has all tokens of the text.
  HeldOutExpectations(const Tokenizer& tokenizer, TokenSpan text);

  /// About the most bytes that are kept of a text of so many tokens.
  static std::int64_t bytes_kept(std::int64_t tokens) { return 400 * tokens; }
  /// About how many bytes the constructor takes, with those that are kept.
  static std::int64_t bytes_to_make(std::int64_t tokens, std::int64_t threads);
  /// About how many seconds the constructor takes on an ordinary machine.
  static double seconds_to_make(std::int64_t tokens, std::int64_t vocabulary, std::int64_t threads);

  /// The probability of each token in the place of the token at `position`, given those before it: out [V]. They sum to
  /// 1. Requires: 0 <= position < tokens of the text.
  void probabilities(std::int64_t position, std::span<float> out) const;

 private:
  // What is expected in each place of a part.
  struct Part {
    std::vector<DecisionProbability> expected;
    std::vector<std::uint32_t> begin;  // where that of each place begins
  };

  void predict_part(std::int64_t index, const Tokenizer& tokenizer, std::span<const std::int64_t> joins,
                    std::span<const std::int32_t> ids);

  std::int64_t tokens_;
  std::vector<std::int64_t> counts_;  // of each token in the text
  TokenCode code_;
  std::vector<float> shares_;  // Σ (count + 1/2) of the tokens below each token and node
  std::array<Part, kParts> parts_;
};

}  // namespace maki
