// Batches against loops written from the contract; filling one allocates nothing.
#include "data/dataset/window_batches.h"

#include <map>
#include <numeric>
#include <rapidcheck.h>

#include "autograd/core/philox.h"
#include "tests/catch.h"
#include "tests/data/allocations.h"
#include "tests/data/require_refused.h"

using namespace maki;
using namespace maki::tests;

namespace {

std::vector<std::int32_t> random_tokens(std::int64_t n) {
  const RandomStream stream(3, RandomPurpose::test, static_cast<std::uint64_t>(n));
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < n; ++i)
    tokens.push_back(static_cast<std::int32_t>(stream.below(static_cast<std::uint64_t>(i), 1000)));
  return tokens;
}

struct Batch {
  explicit Batch(std::int64_t size) : ids(static_cast<std::size_t>(size), -7), targets(ids) {}
  std::vector<std::int32_t> ids, targets;
  bool operator==(const Batch&) const = default;
};

}  // namespace

TEST_CASE("training batches are the windows in their order, with targets shifted by one token") {
  for (const std::int64_t n : {5, 6, 40, 1001}) {
    for (const std::int64_t block : {1, 3, 4}) {
      const std::vector<std::int32_t> tokens = random_tokens(n);
      const std::int64_t batch = 3, accum = 2;
      const TrainBatches batches(tokens, batch, block, accum, 9);
      REQUIRE(batches.tokens_per_step() == batch * accum * block);
      const SequenceOrder windows(n, block, 9);
      for (std::int64_t step = 0; step < 20; ++step) {
        for (std::int64_t micro = 0; micro < accum; ++micro) {
          Batch got(batch * block), expected(batch * block);
          REQUIRE(batches.fill(step, micro, got.ids, got.targets) == batch * block);
          for (std::int64_t row = 0; row < batch; ++row) {
            const std::int64_t start = windows.start((step * accum + micro) * batch + row);
            for (std::int64_t t = 0; t < block; ++t) {
              expected.ids[static_cast<std::size_t>(row * block + t)] = tokens.at(static_cast<std::size_t>(start + t));
              expected.targets[static_cast<std::size_t>(row * block + t)] =
                  tokens.at(static_cast<std::size_t>(start + t + 1));
            }
          }
          REQUIRE(got == expected);
        }
      }
    }
  }
}

TEST_CASE("accumulation only cuts a batch: k micro-batches of B sequences are one batch of kB") {
  const std::vector<std::int32_t> tokens = random_tokens(500);
  const TrainBatches whole(tokens, 6, 4, 1, 2), parts(tokens, 2, 4, 3, 2);
  for (std::int64_t step = 0; step < 30; ++step) {
    Batch one(24), together(0);
    whole.fill(step, 0, one.ids, one.targets);
    for (std::int64_t micro = 0; micro < 3; ++micro) {
      Batch part(8);
      parts.fill(step, micro, part.ids, part.targets);
      together.ids.insert(together.ids.end(), part.ids.begin(), part.ids.end());
      together.targets.insert(together.targets.end(), part.targets.begin(), part.targets.end());
    }
    REQUIRE(one == together);
  }
  REQUIRE(whole.epochs(124) == parts.epochs(124));
  REQUIRE(whole.epochs(124) == 6.0);  // 500 / 4 - 1 = 124 windows
}

TEST_CASE("one epoch of batches reads every window once") {
  std::vector<std::int32_t> tokens(401);
  std::iota(tokens.begin(), tokens.end(), 0);
  const TrainBatches batches(tokens, 3, 4, 1, 6);  // 99 windows: 33 steps
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    std::map<std::int32_t, int> seen;
    Batch batch(12);
    for (std::int64_t step = 0; step < 33; ++step) {
      batches.fill(epoch * 33 + step, 0, batch.ids, batch.targets);
      for (const std::int32_t id : batch.ids) ++seen[id];
    }
    REQUIRE(seen.size() == 396);
    for (const auto& [id, count] : seen) REQUIRE(count == 1);
    REQUIRE(seen.rbegin()->first - seen.begin()->first == 395);  // no token is skipped
  }
}

TEST_CASE("evaluation reads every target once, in order, and pads the last window") {
  const auto whole = [](std::int64_t n, std::int64_t batch, std::int64_t block) {
    const std::vector<std::int32_t> tokens = random_tokens(n);
    const EvalBatches batches(tokens, batch, block);
    std::vector<std::int32_t> ids, targets;
    std::int64_t total = 0, padded = 0;
    for (std::int64_t i = 0; i < batches.count(); ++i) {
      const std::int64_t rows = batches.rows(i);
      if (rows < 1 || rows > batch || (rows < batch && i + 1 < batches.count())) return false;
      Batch got(rows * block);
      const std::int64_t counted = batches.fill(i, got.ids, got.targets);
      total += counted;
      std::int64_t kept = 0;
      for (std::size_t at = 0; at < got.ids.size(); ++at) {
        if (got.targets[at] == kIgnoredTarget) {
          ++padded;
          if (got.ids[at] != 0) return false;
          continue;
        }
        if (padded > 0) return false;  // no target follows the padding
        ids.push_back(got.ids[at]);
        targets.push_back(got.targets[at]);
        ++kept;
      }
      if (kept != counted) return false;
    }
    return total == n - 1 && total == batches.targets() && padded < block &&
           ids == std::vector(tokens.begin(), tokens.end() - 1) &&
           targets == std::vector(tokens.begin() + 1, tokens.end());
  };
  int cases = 0;
  for (std::int64_t n = 2; n <= 40; ++n) {
    for (std::int64_t batch = 1; batch <= 5; ++batch) {
      for (std::int64_t block = 1; block <= 7; ++block, ++cases) {
        INFO(n << " tokens, batch " << batch << ", block " << block);
        REQUIRE(whole(n, batch, block));
      }
    }
  }
  REQUIRE(cases == 39 * 5 * 7);
  REQUIRE(rc::check("any sizes", [&](std::uint16_t n, std::uint8_t batch, std::uint8_t block) {
    RC_ASSERT(whole(2 + n % 5000, 1 + batch, 1 + block));
  }));
}

TEST_CASE("no token is the target of a token of another piece") {
  // Pieces of 1, 2, … 12 tokens. The value of every token is its position.
  Tokens tokens(1000);
  std::int32_t next = 0;
  std::vector<bool> begins;
  for (std::size_t size = 1; size <= 12; ++size) {
    std::vector<std::int32_t> piece(size);
    std::iota(piece.begin(), piece.end(), next);
    next += static_cast<std::int32_t>(size);
    tokens.begin_piece();
    tokens.begin_piece();  // an empty piece does not count
    tokens.append(piece);
    begins.push_back(true);
    begins.insert(begins.end(), size - 1, false);
  }
  REQUIRE(tokens.view().joins().size() == 11);
  for (const std::int64_t block : {1, 3, 8}) {
    const TrainBatches train(tokens, 2, block, 3, 5);
    for (std::int64_t step = 0; step < 40; ++step) {
      std::int64_t filled = 0;
      for (std::int64_t micro = 0; micro < 3; ++micro) {
        Batch batch(2 * block);
        filled += train.fill(step, micro, batch.ids, batch.targets);
        for (std::size_t i = 0; i < batch.ids.size(); ++i) {
          const std::int32_t follows = batch.ids[i] + 1;
          REQUIRE(batch.targets[i] == (begins.at(static_cast<std::size_t>(follows)) ? kIgnoredTarget : follows));
        }
      }
      REQUIRE(train.targets(step) == filled);
    }
    const EvalBatches eval(tokens, 2, block);
    REQUIRE(eval.targets() == 78 - 12);  // all but the first of each piece
    std::vector<std::int32_t> seen;
    std::int64_t filled = 0;
    for (std::int64_t i = 0; i < eval.count(); ++i) {
      Batch batch(eval.rows(i) * block);
      filled += eval.fill(i, batch.ids, batch.targets);
      for (const std::int32_t target : batch.targets) {
        if (target != kIgnoredTarget) seen.push_back(target);
      }
    }
    REQUIRE(filled == 66);
    std::vector<std::int32_t> expected;
    for (std::int32_t id = 0; id < 78; ++id) {
      if (!begins[static_cast<std::size_t>(id)]) expected.push_back(id);
    }
    REQUIRE(seen == expected);
  }
  Tokens single(10);
  for (const std::int32_t id : {1, 2, 3}) {
    single.begin_piece();
    single.append(std::vector<std::int32_t>{id});
  }
  require_refused([&] { TrainBatches(single, 1, 2, 1, 1); }, {"two or more tokens"});
  require_refused([&] { EvalBatches(single, 1, 2); }, {"two or more tokens"});
}

TEST_CASE("filling allocates nothing") {
  const std::vector<std::int32_t> tokens = random_tokens(1000);
  const TrainBatches train(tokens, 4, 16, 2, 1);
  const EvalBatches eval(tokens, 4, 16);
  Batch batch(64);
  const std::int64_t before = allocations();
  for (std::int64_t step = 0; step < 100; ++step) train.fill(step, step % 2, batch.ids, batch.targets);
  for (std::int64_t i = 0; i + 1 < eval.count(); ++i) eval.fill(i, batch.ids, batch.targets);
  const std::int64_t after = allocations();
  REQUIRE(after == before);
  REQUIRE(before > 0);  // the counter works
}

TEST_CASE(
    "batches reject texts that are too short, numbers of batches that do not exist and buffers of the wrong size") {
  const std::vector<std::int32_t> tokens = random_tokens(20);
  const std::span<const std::int32_t> all = tokens;
  require_refused([&] { TrainBatches(all.first(8), 1, 8, 1, 1); }, {"9", "got 8"});
  require_refused([&] { EvalBatches(all.first(1), 1, 8); }, {"2", "got 1"});
  require_refused([&] { EvalBatches(all.first(0), 1, 8); }, {"got 0"});
  REQUIRE_THROWS_AS(TrainBatches(all, 0, 8, 1, 1), Error);
  REQUIRE_THROWS_AS(TrainBatches(all, 1, 8, 0, 1), Error);
  REQUIRE_THROWS_AS(EvalBatches(all, 0, 8), Error);
  REQUIRE_THROWS_AS(EvalBatches(all, 1, 0), Error);
  Batch small(15), right(16);
  const TrainBatches train(all, 2, 8, 1, 1);
  REQUIRE_THROWS_AS(train.fill(0, 0, small.ids, right.targets), Error);
  REQUIRE_THROWS_AS(train.fill(0, 0, right.ids, small.targets), Error);
  REQUIRE_THROWS_AS(train.fill(-1, 0, right.ids, right.targets), Error);
  REQUIRE_THROWS_AS(train.fill(0, -1, right.ids, right.targets), Error);
  REQUIRE_THROWS_AS(train.fill(0, 1, right.ids, right.targets), Error);
  const EvalBatches eval(all, 2, 8);
  REQUIRE(eval.count() == 2);
  REQUIRE_THROWS_AS(eval.fill(0, small.ids, small.targets), Error);
  REQUIRE_THROWS_AS(eval.fill(2, right.ids, right.targets), Error);
  REQUIRE_THROWS_AS(eval.fill(-1, right.ids, right.targets), Error);
}
