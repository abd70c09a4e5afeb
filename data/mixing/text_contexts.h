// The contexts in which ContextMixer counts: hashes of what is known of a text at the current place.
//
// Thread safety: none; objects are used by one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/mixing/token_traits.h"

namespace maki {

class TextContexts {
 public:
  static constexpr std::size_t kOrders = 6;     ///< the first contexts are those of the last 1 … 6 tokens
  static constexpr std::size_t kContexts = 21;  ///< with the others
  using Hashes = std::array<std::uint64_t, kContexts>;

  /// The traits of each token. If it `recalls`, one context is what followed the last two tokens before: 8 MB.
  explicit TextContexts(std::vector<TokenTraits> traits, bool recalls = true);

  /// The next token begins another text. What followed the last two tokens is still known.
  void begin_text();
  void follow(std::int32_t token);

  /// What is counted at the current place: one hash for each context. Those of different contexts differ.
  Hashes hashes() const;
  /// The k-th last token + 1; 0 before the beginning. Requires: 1 <= k <= kOrders.
  std::uint64_t last(std::size_t k) const { return last_[k - 1]; }
  /// Kinds of the last three characters, below 4096.
  std::size_t kinds() const { return static_cast<std::size_t>(kinds_ & 0xFFF); }
  /// Tokens of the current word, at most kMaxWordLength.
  std::size_t word_length() const { return word_length_; }
  static constexpr std::size_t kMaxWordLength = 7;  ///< with 0, eight values; longer words share sets of weights

 private:
  // The current word, or 0, and the words before it.
  struct Words {
    std::uint64_t current = 0;
    std::array<std::uint64_t, 2> before{};  // the latest first
    void follow(const TokenTraits& traits, std::uint64_t token);
  };

  void end_line();
  std::size_t followers_slot() const;

  std::vector<TokenTraits> traits_;
  // By hash of two tokens: the last four that followed, 16 bits each. Empty if nothing is recalled.
  std::vector<std::uint64_t> followers_;

  std::array<std::uint64_t, kOrders> last_{};
  Words folded_;
  std::uint64_t word_ = 0;   // as it is written
  std::uint64_t kinds_ = 0;  // of the last 16 characters, four bits each
  std::size_t word_length_ = 0;
  std::uint64_t line_ = 0;                  // the line so far
  std::size_t column_ = 0, last_line_ = 0;  // tokens of this line and of the one before
  std::uint64_t heading_ = 0;               // the line after the last empty one: who speaks in a play
  bool after_empty_line_ = true;
};

}  // namespace maki
