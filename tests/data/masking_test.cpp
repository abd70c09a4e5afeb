// Which tokens of a sequence are hidden, and by what.
#include "data/dataset/masking.h"

#include <algorithm>
#include <vector>

#include "autograd/core/check.h"
#include "data/dataset/window_batches.h"
#include "tests/catch.h"

using namespace maki;

namespace {

constexpr std::int64_t kVocabulary = 50;

struct Masked {
  std::vector<std::int32_t> before, ids, targets;
};

// A sequence of tokens 0, 1, 2, …, masked.
Masked masked(std::size_t tokens, std::uint64_t seed, std::int64_t row = 0) {
  Masked m;
  for (std::size_t i = 0; i < tokens; ++i) m.before.push_back(static_cast<std::int32_t>(i % kVocabulary));
  m.ids = m.before;
  m.targets.assign(tokens, 77);
  mask_tokens(RandomStream(seed, RandomPurpose::mask), row, kVocabulary,
              masked_count(static_cast<std::int64_t>(tokens), kEvaluatedPercent), m.ids, m.targets);
  return m;
}

}  // namespace

TEST_CASE("a share of the tokens is predicted, but at least one") {
  REQUIRE(masked_count(1, kTrainedPercent) == 1);
  REQUIRE(masked_count(8, kTrainedPercent) == 2);
  REQUIRE(masked_count(128, kTrainedPercent) == 38);
  const std::vector<std::pair<std::int64_t, std::int64_t>> expected = {
      {1, 1}, {2, 1}, {9, 1}, {10, 2}, {16, 2}, {20, 3}, {64, 10}, {100, 15}, {256, 38}, {512, 77}, {1000, 150}};
  for (const auto& [tokens, count] : expected) {
    INFO(tokens << " tokens");
    REQUIRE(masked_count(tokens, kEvaluatedPercent) == count);
    const Masked m = masked(static_cast<std::size_t>(tokens), 3);
    REQUIRE(std::ssize(m.targets) - std::ranges::count(m.targets, kIgnoredTarget) == count);
  }
}

TEST_CASE("targets are the original tokens, and only tokens with a target change") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Masked m = masked(64, seed);
    for (std::size_t i = 0; i < 64; ++i) {
      INFO("seed " << seed << ", token " << i);
      if (m.targets[i] == kIgnoredTarget) {
        REQUIRE(m.ids[i] == m.before[i]);
      } else {
        REQUIRE(m.targets[i] == m.before[i]);
        REQUIRE((m.ids[i] >= 0 && m.ids[i] <= kVocabulary));
      }
    }
  }
}

TEST_CASE("of the predicted tokens 80 percent are hidden, 10 percent are random and 10 percent stay") {
  std::int64_t hidden = 0, changed = 0, same = 0;
  std::vector<std::int64_t> random(kVocabulary), positions(64), hidden_at(64);
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const Masked m = masked(64, seed);
    for (std::size_t i = 0; i < 64; ++i) {
      if (m.targets[i] == kIgnoredTarget) continue;
      ++positions[i];
      if (m.ids[i] == kVocabulary) {
        ++hidden;
        ++hidden_at[i];
      } else if (m.ids[i] == m.before[i]) {
        ++same;
      } else {
        ++changed;
        ++random[static_cast<std::size_t>(m.ids[i])];
      }
    }
  }
  // 40,000 tokens. Deviations are about 80, 60, 60, 9, 23 and 21; a random token is the original one in 1 of 50 cases.
  REQUIRE(hidden + changed + same == 40000);
  REQUIRE(std::abs(hidden - 32000) < 400);
  REQUIRE(std::abs(changed - 3920) < 300);
  REQUIRE(std::abs(same - 4080) < 300);
  for (const std::int64_t count : random) REQUIRE(std::abs(count - 78) < 50);
  for (const std::int64_t count : positions) REQUIRE(std::abs(count - 625) < 130);
  for (const std::int64_t count : hidden_at) REQUIRE(std::abs(count - 500) < 120);
}

TEST_CASE("what becomes of a predicted token is drawn for each of a sequence") {
  for (const std::int64_t row : {0, 1}) {
    const Masked m = masked(1000, 5, row);
    std::int64_t hidden = 0, same = 0;
    std::vector<std::int32_t> random;
    for (std::size_t i = 0; i < m.ids.size(); ++i) {
      if (m.targets[i] == kIgnoredTarget) continue;
      if (m.ids[i] == kVocabulary) ++hidden;
      if (m.ids[i] == m.before[i]) ++same;
      if (m.ids[i] != kVocabulary && m.ids[i] != m.before[i]) random.push_back(m.ids[i]);
    }
    INFO("row " << row);
    REQUIRE(std::abs(hidden - 120) < 25);  // of 150; deviations are 5 and 4
    REQUIRE(std::abs(same - 15) < 12);
    std::ranges::sort(random);
    REQUIRE(std::unique(random.begin(), random.end()) - random.begin() > 5);  // of about 15 that are drawn from 50
  }
}

TEST_CASE("what is hidden is a function of the stream and the row") {
  const Masked first = masked(64, 5, 2), again = masked(64, 5, 2);
  REQUIRE(first.ids == again.ids);
  REQUIRE(first.targets == again.targets);
  REQUIRE(first.targets != masked(64, 6, 2).targets);
  for (std::int64_t row = 0; row < 8; ++row) {
    for (std::int64_t other = 0; other < row; ++other)
      REQUIRE(masked(64, 5, row).targets != masked(64, 5, other).targets);
  }
}

TEST_CASE("what is hidden is pinned, so that resumed runs continue with it") {
  const Masked m = masked(80, 1337, 4);
  std::vector<std::size_t> positions;
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < m.ids.size(); ++i) {
    if (m.targets[i] == kIgnoredTarget) continue;
    positions.push_back(i);
    ids.push_back(m.ids[i]);
  }
  REQUIRE(positions == std::vector<std::size_t>{1, 10, 22, 24, 29, 39, 40, 44, 55, 58, 61, 67});
  REQUIRE(ids ==
          std::vector<std::int32_t>{50, 50, 50, 24, 50, 30, 50, 50, 50, 50, 50, 50});  // one stays, one is random
}

TEST_CASE("masking nothing, and targets of another length, are refused") {
  std::vector<std::int32_t> three(3), two(2), none;
  const RandomStream stream(1, RandomPurpose::mask);
  REQUIRE_THROWS_AS(mask_tokens(stream, 0, 5, 1, three, two), Error);
  REQUIRE_THROWS_AS(mask_tokens(stream, 0, 5, 1, none, none), Error);
  REQUIRE_THROWS_WITH(mask_tokens(stream, 0, 5, 4, three, three),
                      ContainsSubstring("at most 3 tokens can be predicted; got 4"));
}
