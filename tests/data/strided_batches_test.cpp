// Overlapping evaluation windows, against their definition.
#include <array>
#include <rapidcheck.h>

#include "data/dataset/window_batches.h"
#include "tests/catch.h"

using namespace maki;

namespace {

// What every token but the first is predicted from: [token] = the tokens before it in its window; empty if it has no
// target.
std::vector<std::vector<std::int32_t>> contexts(const EvalBatches& batches, std::int64_t block, std::size_t tokens,
                                                std::vector<std::int32_t>& targets) {
  std::vector<std::vector<std::int32_t>> list;
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < batches.count(); ++i) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(batches.rows(i) * block), -7), next = ids;
    const std::int64_t counted = batches.fill(i, ids, next);
    std::int64_t kept = 0;
    for (std::size_t at = 0; at < ids.size(); ++at) {
      if (next[at] == kIgnoredTarget) continue;
      const std::size_t row = at / static_cast<std::size_t>(block) * static_cast<std::size_t>(block);
      list.emplace_back(ids.begin() + static_cast<std::ptrdiff_t>(row),
                        ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      targets.push_back(next[at]);
      ++kept;
    }
    RC_ASSERT(kept == counted);
    total += counted;
  }
  RC_ASSERT(total == batches.targets());
  RC_ASSERT(list.size() <= tokens);
  return list;
}

// The distinct numbers 0, 1, … of the tokens, with a piece that ends after `join` of them (0: none).
Tokens numbers(std::int64_t count, std::int64_t join) {
  Tokens tokens(count);
  for (std::int32_t i = 0; i < count; ++i) {
    if (i == join) tokens.begin_piece();
    tokens.append(std::array{i});
  }
  return tokens;
}

}  // namespace

TEST_CASE("with a stride every token is predicted once, from as long a context as the stride promises") {
  REQUIRE(rc::check([] {
    const auto count = *rc::gen::inRange<std::int64_t>(2, 60), block = *rc::gen::inRange<std::int64_t>(1, 12);
    const auto stride = *rc::gen::inRange<std::int64_t>(1, block + 1), batch = *rc::gen::inRange<std::int64_t>(1, 5);
    const auto join = *rc::gen::inRange<std::int64_t>(0, count);
    RC_PRE(count > 2 || join == 0);
    const Tokens tokens = numbers(count, join);
    const EvalBatches batches(tokens, batch, block, RowOrder::shuffled, stride);
    std::vector<std::int32_t> targets;
    const auto seen = contexts(batches, block, tokens.size(), targets);
    std::vector<std::int32_t> expected;
    for (std::int32_t id = 1; id < count; ++id) {
      if (id != join) expected.push_back(id);
    }
    RC_ASSERT(targets == expected);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const std::int64_t target = targets[i], length = std::ssize(seen[i]);
      RC_ASSERT(seen[i].back() == target - 1);
      RC_ASSERT(seen[i].front() == target - length);  // a window is consecutive
      RC_ASSERT(length <= block);
      if (target > block) RC_ASSERT(length > block - stride);
      if (target <= block) RC_ASSERT(length == target);
    }
  }));
}

TEST_CASE("a stride of a whole window, or none, gives windows without overlap") {
  const Tokens tokens = numbers(40, 13);
  const EvalBatches plain(tokens, 3, 7), whole(tokens, 3, 7, RowOrder::shuffled, 7);
  REQUIRE(plain.count() == whole.count());
  for (std::int64_t i = 0; i < plain.count(); ++i) {
    REQUIRE(plain.rows(i) == whole.rows(i));
    const auto size = static_cast<std::size_t>(plain.rows(i) * 7);
    std::vector<std::int32_t> ids(size), targets(size), other_ids(size), other_targets(size);
    REQUIRE(plain.fill(i, ids, targets) == whole.fill(i, other_ids, other_targets));
    REQUIRE((ids == other_ids && targets == other_targets));
  }
  REQUIRE(EvalBatches(tokens, 3, 7, RowOrder::shuffled, 1).count() == 11);  // 33 windows
}

TEST_CASE("a stride that would leave tokens out, and one for continued rows, are refused") {
  const Tokens tokens = numbers(40, 0);
  REQUIRE_THROWS_WITH(EvalBatches(tokens, 3, 7, RowOrder::shuffled, 8), ContainsSubstring("in [0, 7]"));
  REQUIRE_THROWS_WITH(EvalBatches(tokens, 3, 7, RowOrder::shuffled, -1), ContainsSubstring("got -1"));
  REQUIRE_THROWS_WITH(EvalBatches(tokens, 3, 7, RowOrder::continued, 2), ContainsSubstring("continued"));
}
