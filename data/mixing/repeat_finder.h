// Predicts that a text goes on as it did when its last tokens occurred before: what the "match model" of PAQ does.
//
// Thread safety: none; objects are used by one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "data/mixing/token_code.h"

namespace maki {

class RepeatFinder {
 public:
  /// Looks for the latest earlier occurrence of the last `length` tokens. Requires: 1 <= length <= kMaxLength; the
  /// text, to which tokens are only appended, and the code outlive the object.
  RepeatFinder(const std::vector<std::int32_t>& text, const TokenCode& code, std::size_t length);

  /// Call before the decisions about the token that follows the text.
  void begin_token();
  /// The stretched probability of a 1 at the next node of that token; 0 if no repetition is known, or if it was left by
  /// an earlier decision about the token.
  float predict(std::int32_t node);
  /// Learns the decision about which predict() was asked last.
  void learn(bool bit);
  /// Call when the token has been appended to the text.
  void end_token();
  /// How many tokens before the current one are repeated, at most kMaxLength; 0 if predict() returned 0.
  std::size_t repeated() const { return expects_ ? length_ : 0; }

  static constexpr std::size_t kMaxLength = 32;  ///< in tokens: longer repetitions count as this long

 private:
  std::size_t slot() const;
  void look_up();

  const std::vector<std::int32_t>& text_;
  const TokenCode& code_;
  std::size_t shortest_, length_ = 0, next_ = 0;  // length of the repetition; where it goes on
  std::vector<std::uint32_t> last_;               // by hash of the last tokens: where a text went on after them
  std::array<float, kMaxLength + 1> trust_;       // by length: the frequency with which the repetition went on
  std::span<const Decision> expected_;            // what is left of the expected token
  bool expects_ = false;
};

}  // namespace maki
