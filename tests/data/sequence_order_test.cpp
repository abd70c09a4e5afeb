// The order of training windows: every window once per epoch, another order and phase in each epoch, and the order is
// fixed forever.
#include "data/dataset/sequence_order.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <rapidcheck.h>
#include <set>
#include <vector>

#include "tests/catch.h"
#include "tests/data/require_refused.h"

using namespace maki;
using maki::tests::require_refused;

namespace {

// The starts of one epoch. Requires on the way that they are in range, have one phase and contain every window once.
std::vector<std::int64_t> checked_epoch(const SequenceOrder& windows, std::int64_t n, std::int64_t block,
                                        std::int64_t epoch) {
  const std::int64_t per_epoch = std::max<std::int64_t>(1, n / block - 1);
  REQUIRE(windows.per_epoch() == per_epoch);
  std::vector<std::int64_t> starts;
  for (std::int64_t i = 0; i < per_epoch; ++i) starts.push_back(windows.start(epoch * per_epoch + i));
  std::vector<std::int64_t> sorted = starts;
  std::ranges::sort(sorted);
  const std::int64_t phase = sorted.front();
  REQUIRE(phase >= 0);
  REQUIRE(phase < std::min(block, n - per_epoch * block));
  bool once = true;
  for (std::int64_t i = 0; i < per_epoch; ++i) once = once && sorted[static_cast<std::size_t>(i)] == phase + i * block;
  REQUIRE(once);
  REQUIRE(sorted.back() + block + 1 <= n);  // the last target exists
  return starts;
}

}  // namespace

TEST_CASE("every window once per epoch, in range, for every small text") {
  for (std::int64_t block = 1; block <= 9; ++block) {
    for (std::int64_t n = block + 1; n <= 60; ++n) {
      const SequenceOrder windows(n, block, static_cast<std::uint64_t>(n));
      for (std::int64_t epoch = 0; epoch < 4; ++epoch) checked_epoch(windows, n, block, epoch);
    }
  }
}

TEST_CASE("every window once per epoch, in range, for any text") {
  REQUIRE(rc::check("any size", [](std::uint16_t more, std::uint8_t size, std::uint64_t seed, std::uint32_t epoch) {
    const std::int64_t block = 1 + size, n = block + 1 + more;
    checked_epoch(SequenceOrder(n, block, seed), n, block, epoch);
  }));
}

TEST_CASE("epochs and seeds differ in order and in phase") {
  const std::int64_t n = 1003, block = 8;
  const SequenceOrder windows(n, block, 1), other(n, block, 2);
  std::set<std::vector<std::int64_t>> orders;
  std::map<std::int64_t, int> phases;
  for (std::int64_t epoch = 0; epoch < 200; ++epoch) {
    std::vector<std::int64_t> starts = checked_epoch(windows, n, block, epoch);
    const std::int64_t phase = *std::ranges::min_element(starts);
    ++phases[phase];
    for (std::int64_t& start : starts) start -= phase;
    REQUIRE(orders.insert(starts).second);
    REQUIRE_FALSE(std::ranges::is_sorted(starts));
  }
  REQUIRE(phases.size() == 8);
  for (const auto& [phase, count] : phases) REQUIRE(count > 8);  // 25 expected, with a standard deviation of 4.7
  REQUIRE(checked_epoch(windows, n, block, 0) != checked_epoch(other, n, block, 0));
}

TEST_CASE("every position in the order is equally likely for every window, also for few windows") {
  for (const std::int64_t n : {2, 3, 5, 8, 17}) {
    const int epochs = 4000;
    std::vector<std::vector<int>> counts(static_cast<std::size_t>(n), std::vector<int>(static_cast<std::size_t>(n)));
    for (int epoch = 0; epoch < epochs; ++epoch) {
      for (std::int64_t i = 0; i < n; ++i)
        ++counts[static_cast<std::size_t>(i)][static_cast<std::size_t>(feistel(i, n, 7, epoch))];
    }
    const double expected = epochs / static_cast<double>(n);
    for (const auto& row : counts) {
      for (const int count : row) {
        INFO("of " << n << " windows: " << count << " times, expected " << expected);
        REQUIRE(std::abs(count - expected) < 5 * std::sqrt(expected));
      }
    }
  }
}

TEST_CASE("neighbours of one epoch are not neighbours of the next") {
  // By chance, about two of the 999 pairs of neighbours stay adjacent.
  const std::int64_t n = 1000;
  int adjacent = 0;
  for (std::int64_t i = 0; i + 1 < n; ++i) adjacent += std::abs(feistel(i, n, 3, 0) - feistel(i + 1, n, 3, 0)) == 1;
  REQUIRE(adjacent < 12);
}

TEST_CASE("the network permutes at every size around the powers of four") {
  for (const std::int64_t power : {1, 4, 16, 64, 256, 1024, 4096}) {
    for (std::int64_t n = std::max<std::int64_t>(1, power - 2); n <= power + 2; ++n) {
      std::vector<bool> seen(static_cast<std::size_t>(n));
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t to = feistel(i, n, 11, n);
        REQUIRE((to >= 0 && to < n));
        REQUIRE_FALSE(seen[static_cast<std::size_t>(to)]);
        seen[static_cast<std::size_t>(to)] = true;
      }
    }
  }
}

// The values agree with an independent implementation in Python that was written from the comments of philox.h and
// sequence_order.h.
TEST_CASE("the order is pinned: it never changes by accident") {
  const SequenceOrder windows(1000, 8, 1337);
  const auto starts = [&](std::int64_t from) {
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < 8; ++i) values.push_back(windows.start(from + i));
    return values;
  };
  REQUIRE(windows.per_epoch() == 124);
  REQUIRE(starts(0) == std::vector<std::int64_t>{678, 758, 926, 46, 598, 766, 806, 398});
  REQUIRE(starts(124) == std::vector<std::int64_t>{798, 574, 526, 886, 662, 678, 878, 670});
  REQUIRE(starts(124'000'000'000) == std::vector<std::int64_t>{204, 820, 364, 212, 892, 756, 788, 308});
  REQUIRE(SequenceOrder(1'003'854, 64, 1).start(0) == 824311);
}

TEST_CASE("a start is a function of seed and index only, and seeking costs nothing") {
  const std::int64_t n = 1'000'000'000'000, block = 1024;
  const SequenceOrder huge(n, block, 5);
  std::int64_t seen = 0;
  for (const std::int64_t i : {std::int64_t{0}, std::int64_t{1}, huge.per_epoch() - 1, huge.per_epoch(),
                               huge.per_epoch() * 1000 + 12345, std::int64_t{1} << 60}) {
    const std::int64_t start = huge.start(i);
    REQUIRE((start >= 0 && start + block + 1 <= n));
    REQUIRE(SequenceOrder(n, block, 5).start(i) == start);
    ++seen;
  }
  REQUIRE(seen == 6);
}

TEST_CASE("the count of epochs includes fractions") {
  const SequenceOrder windows(1000, 8, 1);
  REQUIRE(windows.epochs(0) == 0);
  REQUIRE(windows.epochs(124) == 1);
  REQUIRE(windows.epochs(186) == 1.5);
}

TEST_CASE("a text of T + 1 tokens is one window, one fewer is rejected with both numbers") {
  const SequenceOrder one(9, 8, 1);
  REQUIRE(one.per_epoch() == 1);
  for (std::int64_t i = 0; i < 5; ++i) REQUIRE(one.start(i) == 0);
  require_refused([] { SequenceOrder(8, 8, 1); }, {"block_size", "9", "got 8", "more text"});
  require_refused([] { SequenceOrder(0, 1, 1); }, {"2", "got 0"});
}

TEST_CASE("an index that does not exist is refused: looking for its place might never end") {
  REQUIRE(feistel(0, 1, 7, 0) == 0);
  for (const auto& [index, n] : {std::pair(-1, 5), std::pair(5, 5), std::pair(0, 0)})
    REQUIRE_THROWS_AS(feistel(index, n, 7, 0), Error);
  REQUIRE_THROWS_AS(SequenceOrder(100, 3, 7).start(-1), Error);
}
