// Tokens as sequences of binary decisions. Predictions of several models can then be mixed decision by decision, which
// costs the length of a code word per token instead of the size of the vocabulary.
//
// Thread safety: immutable; may be used by several threads at once.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace maki {

/// One decision on the way to a token: at `node` the code continues with `bit`.
struct Decision {
  std::int32_t node;
  bool bit;
  bool operator==(const Decision&) const = default;
};

/// What a distribution over the tokens gives to the two branches of each node: [node][bit].
using BranchSums = std::vector<std::array<double, 2>>;

/// How often each token of a vocabulary occurs. Requires: 0 <= id < vocab_size.
std::vector<std::int64_t> token_counts(std::span<const std::int32_t> ids, std::int64_t vocab_size);

/// A code that keeps the order of the tokens: a node divides a stretch of them where the two parts occur as equally
/// often as possible, counts[id] + 1 times each (a weight-balanced tree; Knuth, The Art of Computer Programming 3,
/// section 6.2.2). Code words are at most a little longer than those of Huffman's code, but neighbours in the order
/// share their first decisions. If neighbours are alike, what is learned about one of them helps with the others:
/// capitals, or the characters of a script. The only token of a vocabulary takes no decision.
class TokenCode {
 public:
  /// Requires: at least one token, no count below 0; `order` has each id once.
  TokenCode(std::span<const std::int64_t> counts, std::span<const std::int32_t> order);

  std::int32_t vocab_size() const { return static_cast<std::int32_t>(begin_.size()) - 1; }
  /// The nodes at which something is decided: one fewer than tokens. The first decision is made at node 0.
  std::int32_t nodes() const { return static_cast<std::int32_t>(children_.size()); }
  /// What follows each decision at a node: a token, or vocab_size() + the number of another node, which is higher.
  const std::array<std::int32_t, 2>& children(std::int32_t node) const {
    return children_[static_cast<std::size_t>(node)];
  }
  /// Three levels of nodes form a group: `first` and what it leads to. A node is a `member` of one group, from 1 to 7.
  struct Group {
    std::int32_t first;
    std::uint16_t member;
  };
  static constexpr std::size_t kGroupLevels = 3;
  const Group& group(std::int32_t node) const { return groups_[static_cast<std::size_t>(node)]; }
  /// The tokens that a child leads to, which may be a token itself.
  std::span<const std::int32_t> tokens_below(std::int32_t child) const;
  /// The decisions that lead to a token. Requires: 0 <= token < vocab_size().
  std::span<const Decision> path(std::int32_t token) const {
    const auto at = static_cast<std::size_t>(token);
    return std::span(decisions_).subspan(begin_[at], begin_[at + 1] - begin_[at]);
  }
  /// Sets `sums` to those of a distribution. Requires: vocab_size() probabilities.
  void sum_branches(std::span<const float> probabilities, BranchSums& sums) const;

 private:
  Group group_of(const Decision& parent) const;

  std::vector<std::array<std::int32_t, 2>> children_;
  std::vector<Group> groups_;                          // by node
  std::vector<std::int32_t> order_;                    // of the tokens
  std::vector<std::array<std::size_t, 2>> stretches_;  // of the order: where the tokens below a child begin and end
  std::vector<Decision> decisions_;                    // of all tokens, one after the other
  std::vector<std::size_t> begin_;  // [id]: where those of a token begin; with the end of the last one
};

}  // namespace maki
