// Tokens as binary decisions: the code, and distributions over its branches.
#include "data/mixing/token_code.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/core/philox.h"
#include "data/mixing/probable_nodes.h"
#include "tests/catch.h"
#include "tests/data/random_ids.h"

using namespace maki;
using namespace maki::tests;
using Catch::Matchers::WithinAbs;

namespace {

Ids ids_in_order(std::size_t n) {
  Ids ids(n);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

}  // namespace

TEST_CASE("a token code is a prefix code that divides stretches of the order in the middle") {
  const std::vector<std::int64_t> counts = {4, 1, 0, 9, 30, 2};  // + 1: 5, 2, 1, 10, 31, 3
  const TokenCode code(counts, ids_in_order(6));
  REQUIRE(code.vocab_size() == 6);
  REQUIRE(code.nodes() == 5);
  const std::size_t lengths[] = {3, 4, 4, 2, 2, 2};
  double kraft = 0;
  for (std::int32_t id = 0; id < 6; ++id) {
    const auto path = code.path(id);
    INFO(id);
    REQUIRE(path.size() == lengths[id]);
    REQUIRE(path.front().node == 0);
    kraft += std::pow(0.5, path.size());
    for (std::int32_t other = 0; other < id; ++other) {
      const auto shorter = code.path(other);
      const std::size_t n = std::min(path.size(), shorter.size());
      REQUIRE_FALSE(std::ranges::equal(path.first(n), shorter.first(n)));
    }
  }
  REQUIRE(kraft == 1);
  REQUIRE(TokenCode(std::vector<std::int64_t>{7}, ids_in_order(1)).path(0).empty());
}

TEST_CASE("code words are in the order of the tokens, and hardly longer than they must be") {
  const RandomStream stream(6, RandomPurpose::test);
  std::vector<std::int64_t> counts(200);
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = 1 << stream.below(i, 16);
  Ids order = ids_in_order(200);
  std::ranges::sort(order, {}, [](std::int32_t id) { return id * 37 % 200; });
  const TokenCode code(counts, order);
  const auto bits = [&](std::int32_t id) {
    std::vector<bool> list;
    for (const Decision& decision : code.path(id)) list.push_back(decision.bit);
    return list;
  };
  double total = 0, length = 0, entropy = 0;
  for (const std::int64_t count : counts) total += static_cast<double>(count + 1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double p = static_cast<double>(counts[static_cast<std::size_t>(order[i])] + 1) / total;
    length += p * static_cast<double>(code.path(order[i]).size());
    entropy -= p * std::log2(p);
    if (i > 0) REQUIRE(bits(order[i - 1]) < bits(order[i]));
  }
  REQUIRE(length < entropy + 0.7);
}

TEST_CASE("the branches on the way to a token have its probability") {
  const std::vector<std::int64_t> counts = {4, 1, 0, 9, 30, 2};
  const TokenCode code(counts, ids_in_order(6));
  const std::vector<float> p = {0.1F, 0.05F, 0.2F, 0.25F, 0.3F, 0.1F};
  BranchSums sums;
  code.sum_branches(p, sums);
  for (std::int32_t id = 0; id < 6; ++id) {
    double product = 1;
    for (const auto [node, bit] : code.path(id)) {
      const auto& branches = sums[static_cast<std::size_t>(node)];
      product *= branches[bit ? 1 : 0] / (branches[0] + branches[1]);
    }
    REQUIRE_THAT(product, WithinAbs(p[static_cast<std::size_t>(id)], 1e-6));
  }
}

TEST_CASE("groups of a code are three levels of nodes, and what is below a child is a stretch of the order") {
  Ids order = ids_in_order(200);
  std::ranges::sort(order, {}, [](std::int32_t id) { return id * 37 % 200; });
  const TokenCode code(std::vector<std::int64_t>(200, 1), order);
  for (std::int32_t id = 0; id < 200; ++id) {
    const std::span<const Decision> path = code.path(id);
    for (std::size_t i = 0; i < path.size(); ++i) {
      const auto [first, member] = code.group(path[i].node);
      const std::size_t level = i % TokenCode::kGroupLevels;
      REQUIRE(first == path[i - level].node);
      unsigned expected = 1;  // the way from the first node, after a leading 1
      for (std::size_t k = i - level; k < i; ++k) expected = 2 * expected + (path[k].bit ? 1 : 0);
      REQUIRE(member == expected);
      REQUIRE(std::ranges::count(code.tokens_below(code.vocab_size() + path[i].node), id) == 1);
    }
    REQUIRE(std::ranges::equal(code.tokens_below(id), Ids{id}));
  }
  for (std::int32_t node = 0; node < code.nodes(); ++node) {
    Ids both;
    for (const std::int32_t child : code.children(node)) {
      const auto below = code.tokens_below(child);
      both.insert(both.end(), below.begin(), below.end());
    }
    REQUIRE(std::ranges::equal(code.tokens_below(code.vocab_size() + node), both));
  }
  REQUIRE(std::ranges::equal(code.tokens_below(code.vocab_size()), order));
}

TEST_CASE("probable nodes are visited level by level, and what is not is told with its probability") {
  const TokenCode code(std::vector<std::int64_t>(4096, 1), ids_in_order(4096));  // 12 decisions each
  std::vector<std::int32_t> entered, decided;
  double sum = 0;
  std::size_t tokens = 0;
  visit_probable_nodes(
      code,
      [&](std::int32_t node, std::optional<std::int32_t> from) {
        REQUIRE(from.has_value() == !entered.empty());
        if (from) REQUIRE(std::ranges::count(decided, *from) == 1);
        entered.push_back(node);
      },
      [&](std::int32_t node) {
        decided.push_back(node);
        return DecisionProbability{1 << 15};
      },
      [&](std::int32_t child, float p) {
        REQUIRE(p == 0x1p-10F);  // the first that is less than the least
        sum += static_cast<double>(p);
        tokens += code.tokens_below(child).size();
      });
  REQUIRE(entered == decided);
  REQUIRE(decided.size() == 1023);
  REQUIRE(sum == 1);
  REQUIRE(tokens == 4096);
  visit_probable_nodes(
      TokenCode(std::vector<std::int64_t>(1), Ids{0}), [](auto&&...) { FAIL(); },
      [](std::int32_t) { return DecisionProbability{0}; },
      [](std::int32_t child, float p) { REQUIRE((child == 0 && p == 1)); });
}
