// Batches with continued rows against the ring written out: every row continues with the token after its last one, and
// every token of the text is read equally often.
#include <numeric>
#include <rapidcheck.h>
#include <set>

#include "data/dataset/window_batches.h"
#include "tests/catch.h"
#include "tests/data/allocations.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr std::uint64_t kSeed = 9;

// The value of every token is its position.
std::vector<std::int32_t> positions(std::int64_t n) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(n));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

struct Filled {
  Filled(const TrainBatches& batches, std::int64_t size, std::int64_t step, std::int64_t micro)
      : ids(static_cast<std::size_t>(size), -7), targets(ids), count(batches.fill(step, micro, ids, targets)) {}
  std::vector<std::int32_t> ids, targets;
  std::int64_t count;
};

struct Sizes {
  std::int64_t tokens, batch, block, accum;
};

// The first token of each row at step 0.
std::vector<std::int64_t> first_tokens(const Sizes& s, std::uint64_t seed) {
  const std::vector<std::int32_t> text = positions(s.tokens);
  const TrainBatches batches(text, s.batch, s.block, s.accum, seed, RowOrder::continued);
  std::vector<std::int64_t> list;
  for (std::int64_t micro = 0; micro < s.accum; ++micro) {
    const Filled filled(batches, s.batch * s.block, 0, micro);
    for (std::int64_t row = 0; row < s.batch; ++row)
      list.push_back(filled.ids[static_cast<std::size_t>(row * s.block)]);
  }
  return list;
}

// Whether `steps` steps are those of rows that begin equally far apart on the ring and go on where they stood.
bool rows_continue(const Sizes& s, std::int64_t steps) {
  const std::vector<std::int32_t> text = positions(s.tokens);
  const TrainBatches batches(text, s.batch, s.block, s.accum, kSeed, RowOrder::continued);
  std::vector<std::int64_t> next = first_tokens(s, kSeed);
  const std::int64_t rows = s.batch * s.accum;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (next[static_cast<std::size_t>(row)] != (next[0] + row * s.tokens / rows) % s.tokens) return false;
  }
  for (std::int64_t step = 0; step < steps; ++step) {
    std::int64_t counted = 0;
    for (std::int64_t micro = 0; micro < s.accum; ++micro) {
      const Filled filled(batches, s.batch * s.block, step, micro);
      std::int64_t targets = 0;
      for (std::int64_t i = 0; i < s.batch * s.block; ++i) {
        std::int64_t& at = next[static_cast<std::size_t>(micro * s.batch + i / s.block)];
        const bool last = at == s.tokens - 1;  // has no target
        const auto target = last ? kIgnoredTarget : static_cast<std::int32_t>(at + 1);
        const auto k = static_cast<std::size_t>(i);
        if (filled.ids[k] != at || filled.targets[k] != target) return false;
        targets += last ? 0 : 1;
        at = (at + 1) % s.tokens;
      }
      if (filled.count != targets) return false;
      counted += targets;
    }
    if (batches.targets(step) != counted) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("continued rows go on where they stood, around the text and from its end to its beginning") {
  int cases = 0;
  for (const std::int64_t n : {5, 6, 7, 12, 29}) {
    for (const std::int64_t batch : {1, 2, 5}) {
      for (const std::int64_t block : {1, 3, 4}) {
        for (const std::int64_t accum : {1, 3}) {
          INFO(n << " tokens, batch " << batch << ", block " << block << ", accumulated " << accum);
          REQUIRE(rows_continue({n, batch, block, accum}, 2 * n + 3));
          ++cases;
        }
      }
    }
  }
  REQUIRE(cases == 90);
  REQUIRE(rc::check("any sizes", [](std::uint16_t n, std::uint8_t batch, std::uint8_t block, std::uint8_t accum) {
    const std::int64_t length = 1 + block % 64;
    RC_ASSERT(rows_continue({length + 1 + n % 3000, 1 + batch % 16, length, 1 + accum % 4}, 9));
  }));
}

TEST_CASE("an epoch of continued rows reads every token once") {
  const std::int64_t n = 240, batch = 4, block = 5, accum = 3;  // four steps
  const std::vector<std::int32_t> text = positions(n);
  const TrainBatches batches(text, batch, block, accum, kSeed, RowOrder::continued);
  REQUIRE(batches.epochs(4) == 1);
  REQUIRE(batches.epochs(6) == 1.5);
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    std::multiset<std::int32_t> seen;
    for (std::int64_t step = 4 * epoch; step < 4 * (epoch + 1); ++step) {
      for (std::int64_t micro = 0; micro < accum; ++micro) {
        const Filled filled(batches, batch * block, step, micro);
        seen.insert(filled.ids.begin(), filled.ids.end());
      }
    }
    REQUIRE(seen == std::multiset<std::int32_t>(text.begin(), text.end()));
  }
}

TEST_CASE("where continued rows begin depends on the seed alone") {
  const Sizes sizes{1000, 2, 3, 2};
  std::set<std::int64_t> first;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    first.insert(first_tokens(sizes, seed)[0]);
    REQUIRE(first_tokens(sizes, seed) == first_tokens(sizes, seed));
  }
  REQUIRE(first.size() > 150);  // 181 are expected
  REQUIRE(*first.begin() < 50);
  REQUIRE(*first.rbegin() > 950);
  // Fixed forever: a run must continue with the tokens with which an earlier version would have continued.
  const ContinuedOrder order(1'115'394, 64, 12, 1337);
  REQUIRE(order.start(0, 0) == 931'875);
  REQUIRE(order.start(5000, 7) == 787'127);
}

TEST_CASE("the order of continued rows is exact for texts and steps that are as long as possible") {
  const std::int64_t n = 99'999'999'977, block = 65'536, rows = 1000, step = 1'000'000'000;
  const ContinuedOrder order(n, block, rows, kSeed);
  __extension__ using Wide = __int128;
  for (const std::int64_t row : {0, 1, 999}) {
    const auto expected =
        static_cast<std::int64_t>((Wide{order.start(0, 0)} + Wide{row} * n / rows + Wide{step} * block) % n);
    REQUIRE(order.start(step, row) == expected);
  }
}

TEST_CASE("continued rows: no token is the target of a token of another piece") {
  Tokens tokens(1000);
  std::set<std::int32_t> begins;
  std::int32_t next = 0;
  for (std::int32_t size = 1; size <= 12; ++size) {
    const std::vector<std::int32_t> all = positions(next + size);
    tokens.begin_piece();
    tokens.append(std::span(all).subspan(static_cast<std::size_t>(next)));
    begins.insert(next);
    next += size;
  }
  for (const std::int64_t block : {1, 3, 8, 77}) {
    const TrainBatches batches(tokens, 2, block, 3, 5, RowOrder::continued);
    for (std::int64_t step = 0; step < 200; ++step) {
      std::int64_t counted = 0;
      for (std::int64_t micro = 0; micro < 3; ++micro) {
        const Filled filled(batches, 2 * block, step, micro);
        for (std::size_t i = 0; i < filled.ids.size(); ++i) {
          const std::int32_t follows = (filled.ids[i] + 1) % 78;
          REQUIRE(filled.targets[i] == (begins.contains(follows) ? kIgnoredTarget : follows));
          counted += filled.targets[i] != kIgnoredTarget;
        }
      }
      REQUIRE(batches.targets(step) == counted);
    }
  }
}

TEST_CASE("evaluation with continued rows reads every target once, each row a stretch of the text") {
  const auto whole = [](std::int64_t n, std::int64_t batch, std::int64_t block) {
    const std::vector<std::int32_t> text = positions(n);
    const EvalBatches batches(text, batch, block, RowOrder::continued);
    // As many rows as a batch may have if each has 16 windows.
    const std::int64_t windows = (n - 2 + block) / block, most = std::clamp<std::int64_t>(windows / 16, 1, batch);
    const std::int64_t rows = batches.rows(0);
    if (batches.targets() != n - 1 || batches.count() != (windows + most - 1) / most) return false;
    if (rows < 1 || rows > most || (rows - 1) * batches.count() >= windows) return false;
    std::multiset<std::int32_t> seen;
    std::vector<std::int32_t> last(static_cast<std::size_t>(rows), -1);
    for (std::int64_t i = 0; i < batches.count(); ++i) {
      if (batches.rows(i) != rows) return false;
      std::vector<std::int32_t> ids(static_cast<std::size_t>(rows * block), -7), targets = ids;
      const std::int64_t counted = batches.fill(i, ids, targets);
      std::int64_t kept = 0;
      for (std::size_t k = 0; k < ids.size(); ++k) {
        std::int32_t& before = last[k / static_cast<std::size_t>(block)];
        if (targets[k] == kIgnoredTarget) {
          if (ids[k] != 0) return false;
          before = -2;  // nothing follows the padding
          continue;
        }
        if (before == -2 || (before >= 0 && ids[k] != before + 1) || targets[k] != ids[k] + 1) return false;
        before = ids[k];
        seen.insert(targets[k]);
        ++kept;
      }
      if (counted != kept) return false;
    }
    return seen == std::multiset<std::int32_t>(text.begin() + 1, text.end());
  };
  for (std::int64_t n = 2; n <= 40; ++n) {
    for (std::int64_t batch = 1; batch <= 5; ++batch) {
      for (std::int64_t block = 1; block <= 7; ++block) {
        INFO(n << " tokens, batch " << batch << ", block " << block);
        REQUIRE(whole(n, batch, block));
      }
    }
  }
  REQUIRE(rc::check("any sizes", [&](std::uint16_t n, std::uint8_t batch, std::uint8_t block) {
    RC_ASSERT(whole(2 + n % 5000, 1 + batch, 1 + block));
  }));
}

TEST_CASE("filling continued rows allocates nothing") {
  const std::vector<std::int32_t> text = positions(1000);
  const TrainBatches train(text, 4, 16, 2, 1, RowOrder::continued);
  const EvalBatches eval(text, 4, 16, RowOrder::continued);
  std::vector<std::int32_t> ids(64), targets(64);
  const auto evaluated = static_cast<std::size_t>(16 * eval.rows(0));
  const std::int64_t before = allocations();
  for (std::int64_t step = 0; step < 100; ++step) train.fill(step, step % 2, ids, targets);
  for (std::int64_t i = 0; i < eval.count(); ++i)
    eval.fill(i, std::span(ids).first(evaluated), std::span(targets).first(evaluated));
  const std::int64_t after = allocations();
  REQUIRE(after == before);
}
