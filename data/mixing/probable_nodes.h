// Distributions over the tokens of a code as decisions: only those that are likely to be met are given, and each leaves
// the tokens below it, which no further decision tells apart, their shares in the text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "data/mixing/token_code.h"

namespace maki {

/// The probability of a 1, in units of 2^-16.
using DecisionProbability = std::uint16_t;

/// Visits the nodes of a code that are reached with a probability of at least 2^-9, level by level:
/// enter(node, from) announces a node some calls before decide(node) is asked for its DecisionProbability; `from` is
/// the node that leads to it, if any. end(child, p) is told what a decision leads to with the probability p and is not
/// visited: a token, or a node that is improbable. These p sum to 1.
template <class Enter, class Decide, class End>
void visit_probable_nodes(const TokenCode& code, Enter&& enter, Decide&& decide, End&& end) {
  constexpr std::size_t kMostOfLevel = 512;
  constexpr float kLeast = 1.0F / kMostOfLevel;
  // Nodes of a level exclude each other, and at most two levels are announced at a time.
  struct Reached {
    std::int32_t node;
    float p;
  };
  std::array<Reached, 2 * kMostOfLevel> ring;
  if (code.nodes() == 0) return end(0, 1.0F);
  ring[0] = {0, 1.0F};
  enter(0, std::optional<std::int32_t>());
  std::size_t announced = 1;
  for (std::size_t i = 0; i < announced; ++i) {
    const auto [node, reached] = ring[i % ring.size()];
    const float one = static_cast<float>(DecisionProbability{decide(node)}) / 65536.0F;
    for (const bool bit : {false, true}) {
      const std::int32_t child = code.children(node)[bit ? 1 : 0], next = child - code.vocab_size();
      const float p = reached * (bit ? one : 1 - one);
      if (next < 0 || p < kLeast) {
        end(child, p);
        continue;
      }
      ring[announced++ % ring.size()] = {next, p};
      enter(next, std::optional(node));
    }
  }
}

}  // namespace maki
