// Ids with something to learn, for tests of predictors.
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/core/philox.h"
#include "data/tokenizer/tokens.h"

namespace maki::tests {

using Ids = std::vector<std::int32_t>;

/// n ids below `vocabulary`, two thirds of which follow from the two before them.
inline Ids random_ids(std::size_t n, std::int32_t vocabulary, std::uint64_t seed = 5) {
  const RandomStream stream(seed, RandomPurpose::test);
  Ids ids;
  for (std::size_t i = 0; i < n; ++i) {
    const auto drawn = static_cast<std::int32_t>(stream.below(i, static_cast<std::uint64_t>(vocabulary)));
    ids.push_back(i > 1 && drawn % 3 != 0 ? (ids[i - 1] + 2 * ids[i - 2] + 1) % vocabulary : drawn);
  }
  return ids;
}

/// Tokens in these pieces.
inline Tokens pieces_of(std::int64_t vocabulary, const std::vector<Ids>& pieces) {
  Tokens tokens(vocabulary);
  for (const Ids& piece : pieces) {
    tokens.begin_piece();
    tokens.append(piece);
  }
  return tokens;
}

}  // namespace maki::tests
