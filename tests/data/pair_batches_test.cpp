// Batches of parallel text: what is in them, that training reads every pair once per epoch in an order that depends on
// seed and epoch alone, and that little of a batch is padding.
#include "data/dataset/pair_batches.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <rapidcheck.h>
#include <set>
#include <thread>

#include "autograd/core/philox.h"
#include "data/dataset/window_batches.h"
#include "tests/catch.h"
#include "tests/data/require_refused.h"

using namespace maki;
using namespace maki::tests;

namespace {

using Ids = std::vector<std::int32_t>;

// Pairs with these lengths; the ids tell pairs apart.
TokenPairs pairs_of_lengths(const std::vector<std::pair<std::int64_t, std::int64_t>>& lengths) {
  TokenPairs pairs(1000, 1000);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Ids source(static_cast<std::size_t>(lengths[i].first), static_cast<std::int32_t>(i % 997)),
        target(static_cast<std::size_t>(lengths[i].second), static_cast<std::int32_t>(i % 991));
    pairs.add(source, target);
  }
  return pairs;
}

TokenPairs random_pairs(std::size_t count, std::uint64_t longest = 12) {
  const RandomStream stream(5, RandomPurpose::test);
  std::vector<std::pair<std::int64_t, std::int64_t>> lengths;
  for (std::uint64_t i = 0; i < count; ++i)
    lengths.emplace_back(1 + stream.below(2 * i, longest), 1 + stream.below(2 * i + 1, longest));
  return pairs_of_lengths(lengths);
}

// The rows of `batches` batches from batch `first` on, one after the other.
Ids rows_of(const PairTrainBatches& batches, std::int64_t first, std::int64_t count) {
  Ids rows;
  for (std::int64_t i = first; i < first + count; ++i) {
    const Ids more = batches.rows(i);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

Ids sorted(Ids rows) {
  std::ranges::sort(rows);
  return rows;
}

Ids all_rows(std::int64_t count) {
  Ids rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// The share of the positions of all batches of an epoch, on both sides, that are padding.
double padding(const TokenPairs& pairs, std::int64_t batch_size) {
  const PairTrainBatches batches(pairs, batch_size, 1);
  std::int64_t positions = 0, tokens = 0;
  for (std::int64_t i = 0; i < batches.per_epoch(); ++i) {
    const PairBatch batch = make_pair_batch(pairs, batches.rows(i), {999, 999});
    positions += std::ssize(batch.source) + std::ssize(batch.ids);
    tokens += std::accumulate(batch.source_mask.begin(), batch.source_mask.end(), std::int64_t{0}) + batch.target_count;
  }
  REQUIRE(tokens == pairs.token_count() + 2 * pairs.size());  // with the end tokens
  return 1 - static_cast<double>(tokens) / static_cast<double>(positions);
}

}  // namespace

TEST_CASE("a batch holds sources and targets with their end tokens, padded to the longest of each side") {
  TokenPairs pairs(10, 20);
  pairs.add(Ids{1, 2, 3}, Ids{11});
  pairs.add(Ids{4}, Ids{12, 13});
  pairs.add(Ids{5, 6}, Ids{14, 15});
  const PairBatch batch = make_pair_batch(pairs, Ids{1, 0}, {.source = 9, .target = 19});
  REQUIRE(batch.rows == 2);
  REQUIRE(batch.source_length == 4);
  REQUIRE(batch.target_length == 3);
  REQUIRE(batch.source == Ids{4, 9, 9, 9, 1, 2, 3, 9});
  REQUIRE(batch.source_mask == Ids{1, 1, 0, 0, 1, 1, 1, 1});
  REQUIRE(batch.padded_source);
  REQUIRE(batch.ids == Ids{19, 12, 13, 19, 11, 19});
  const std::int32_t none = kIgnoredTarget;
  REQUIRE(batch.targets == Ids{12, 13, 19, 11, 19, none});
  REQUIRE(batch.target_count == 5);
  const PairBatch equal = make_pair_batch(pairs, Ids{2}, {.source = 9, .target = 19});
  REQUIRE(equal.source == Ids{5, 6, 9});
  REQUIRE(equal.source_mask == Ids{1, 1, 1});
  REQUIRE_FALSE(equal.padded_source);
  REQUIRE(equal.target_count == 3);
}

TEST_CASE("every batch against a loop over its pairs") {
  REQUIRE(rc::check("random batches", [](std::uint16_t seed) {
    const TokenPairs pairs = random_pairs(40);
    const RandomStream stream(seed, RandomPurpose::test);
    Ids rows;
    for (std::uint64_t i = 0; i < 1 + seed % 7u; ++i) rows.push_back(static_cast<std::int32_t>(stream.below(i, 40)));
    const PairEnds ends{.source = 998, .target = 999};
    const PairBatch batch = make_pair_batch(pairs, rows, ends);
    RC_ASSERT(std::ssize(batch.source) == batch.rows * batch.source_length);
    RC_ASSERT(batch.ids.size() == batch.targets.size());
    std::int64_t counted = 0, hidden = 0, longest_source = 0, longest_target = 0;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const Ids source = pairs.source(rows[r]), target = pairs.target(rows[r]);
      longest_source = std::max<std::int64_t>(longest_source, std::ssize(source) + 1);
      longest_target = std::max<std::int64_t>(longest_target, std::ssize(target) + 1);
      for (std::size_t t = 0; t < static_cast<std::size_t>(batch.source_length); ++t) {
        const std::size_t at = r * static_cast<std::size_t>(batch.source_length) + t;
        RC_ASSERT(batch.source[at] == (t < source.size() ? source[t] : ends.source));
        RC_ASSERT(batch.source_mask[at] == (t <= source.size() ? 1 : 0));
        hidden += 1 - batch.source_mask[at];
      }
      for (std::size_t t = 0; t < static_cast<std::size_t>(batch.target_length); ++t) {
        const std::size_t at = r * static_cast<std::size_t>(batch.target_length) + t;
        RC_ASSERT(batch.ids[at] == (t >= 1 && t <= target.size() ? target[t - 1] : ends.target));
        RC_ASSERT(batch.targets[at] == (t < target.size()    ? target[t]
                                        : t == target.size() ? ends.target
                                                             : kIgnoredTarget));
        counted += batch.targets[at] != kIgnoredTarget ? 1 : 0;
      }
    }
    RC_ASSERT(batch.source_length == longest_source);
    RC_ASSERT(batch.target_length == longest_target);
    RC_ASSERT(batch.target_count == counted);
    RC_ASSERT(batch.padded_source == (hidden > 0));
  }));
}

TEST_CASE("training reads every pair once per epoch, whatever the batch size") {
  for (const std::int64_t count : {1, 2, 7, 100, 101}) {
    const TokenPairs pairs = random_pairs(static_cast<std::size_t>(count));
    for (const std::int64_t size : {1, 3, 7, 100, 1000}) {
      const PairTrainBatches batches(pairs, size, 3);
      REQUIRE(batches.per_epoch() == (count + size - 1) / size);
      for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
        std::int64_t short_ones = 0;
        for (std::int64_t i = 0; i < batches.per_epoch(); ++i) {
          const std::int64_t rows = std::ssize(batches.rows(epoch * batches.per_epoch() + i));
          REQUIRE(rows >= 1);
          REQUIRE(rows <= size);
          short_ones += rows < size ? 1 : 0;
        }
        REQUIRE(short_ones <= 1);
        REQUIRE(sorted(rows_of(batches, epoch * batches.per_epoch(), batches.per_epoch())) == all_rows(count));
      }
    }
  }
}

TEST_CASE("a sum over batches is that of their rows, also over several epochs") {
  const TokenPairs pairs = random_pairs(50);
  const PairTrainBatches batches(pairs, 8, 3);
  const auto length = [&](std::int64_t row) { return pairs.source_length(row); };
  for (const std::int64_t begin : {0, 1, 6, 7, 9}) {
    std::int64_t expected = 0;
    for (std::int64_t end = begin; end < 25; ++end) {
      REQUIRE(batches.sum(begin, end, length) == expected);
      for (const std::int32_t row : batches.rows(end)) expected += pairs.source_length(row);
    }
  }
}

TEST_CASE("a training batch is a function of seed and number") {
  const TokenPairs pairs = random_pairs(200);
  const PairTrainBatches batches(pairs, 8, 3), same(pairs, 8, 3), other(pairs, 8, 4);
  const std::int64_t epoch = batches.per_epoch();
  const Ids expected = rows_of(batches, 0, 3 * epoch);
  Ids backwards;  // another object, in another order
  for (std::int64_t i = 3 * epoch - 1; i >= 0; --i) {
    const Ids rows = same.rows(i);
    backwards.insert(backwards.begin(), rows.begin(), rows.end());
  }
  REQUIRE(backwards == expected);
  REQUIRE(rows_of(other, 0, epoch) != rows_of(batches, 0, epoch));
  // The order of the batches and, among pairs of equal lengths, what they contain differs from epoch to epoch.
  std::set<Ids> orders, contents;
  for (std::int64_t e = 0; e < 20; ++e) {
    orders.insert(rows_of(batches, e * epoch, epoch));
    std::vector<Ids> sets;
    for (std::int64_t i = 0; i < epoch; ++i) sets.push_back(sorted(batches.rows(e * epoch + i)));
    std::ranges::sort(sets);
    Ids flat;
    for (const Ids& rows : sets) flat.insert(flat.end(), rows.begin(), rows.end());
    contents.insert(flat);
  }
  REQUIRE(orders.size() == 20);
  REQUIRE(contents.size() == 20);
}

TEST_CASE("the order of pair batches is pinned, so that resumed runs continue with it") {
  const TokenPairs pairs = random_pairs(20, 3);
  const PairTrainBatches batches(pairs, 4, 1337);
  REQUIRE(batches.per_epoch() == 5);
  REQUIRE(rows_of(batches, 0, 5) == Ids{16, 12, 9, 13, 5, 18, 6, 8, 19, 10, 14, 17, 3, 11, 4, 15, 1, 7, 0, 2});
  REQUIRE(rows_of(batches, 5, 5) == Ids{10, 14, 17, 2, 11, 3, 4, 15, 12, 16, 13, 9, 1, 8, 0, 19, 5, 6, 18, 7});
  REQUIRE(rows_of(batches, 5'000'000, 5) == Ids{0, 1, 7, 2, 4, 3, 11, 5, 15, 6, 18, 8, 16, 12, 9, 13, 10, 19, 14, 17});
}

TEST_CASE("the batches of an epoch are not in the order of their lengths") {
  const TokenPairs pairs = random_pairs(800);
  const PairTrainBatches batches(pairs, 8, 1);
  std::vector<double> lengths;
  for (std::int64_t i = 0; i < batches.per_epoch(); ++i) {
    double sum = 0;
    for (const std::int32_t row : batches.rows(i)) sum += static_cast<double>(pairs.target_length(row));
    lengths.push_back(sum);
  }
  int falls = 0;
  for (std::size_t i = 1; i < lengths.size(); ++i) falls += lengths[i] < lengths[i - 1] ? 1 : 0;
  REQUIRE(falls > 30);  // of 99
  REQUIRE(falls < 70);
}

TEST_CASE("a batch contains pairs of similar lengths: at most a tenth of it is padding") {
  // Target lengths as in sentences of a conversation: most have 5 to 12 words, few more than 25; a source has 0.8 to
  // 1.4 times as many.
  const RandomStream stream(9, RandomPurpose::test);
  std::vector<std::pair<std::int64_t, std::int64_t>> lengths;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const double target = std::exp(std::log(8.0) + 0.4 * stream.normal(2 * i));
    const double factor = 0.8 + 0.6 * static_cast<double>(stream.below(1'000'000 + i, 1000)) / 1000;
    lengths.emplace_back(std::max(1L, std::lround(target * factor)), std::max(1L, std::lround(target)));
  }
  const TokenPairs pairs = pairs_of_lengths(lengths);
  for (const std::int64_t batch_size : {16, 64}) {
    const double share = padding(pairs, batch_size);
    INFO("batches of " << batch_size << ": " << 100 * share << " % padding");
    CHECK(share <= 0.1);
    CHECK(share > 0);
  }
}

TEST_CASE("at most a tenth of the batches of the Japanese and English corpus is padding") {
  const std::string folder = MAKI_SOURCE_DIR "/../shared/corpora/enja";
  if (!std::filesystem::exists(folder + "/train.ja")) {
    WARN(folder << " does not exist; nothing is checked");
    return;
  }
  const PairDataset data = make_pair_dataset(load_corpus({folder + "/train.ja", folder + "/train.en"}),
                                             {.val_fraction = 0.01, .max_tokens = 1000, .tokenizer = "word"});
  const double share = padding(data.train, 64);
  INFO(data.train.size() << " pairs: " << 100 * share << " % padding");
  CHECK(share <= 0.1);
}

TEST_CASE("evaluation reads every pair once, in batches of similar lengths that never change") {
  const TokenPairs pairs = random_pairs(101);
  for (const std::int64_t size : {1, 8, 101, 200}) {
    const PairEvalBatches batches(pairs, size), again(pairs, size);
    REQUIRE(batches.count() == (101 + size - 1) / size);
    Ids rows;
    for (std::int64_t i = 0; i < batches.count(); ++i) {
      const Ids more = batches.rows(i);
      REQUIRE(more == again.rows(i));
      rows.insert(rows.end(), more.begin(), more.end());
    }
    REQUIRE(sorted(rows) == all_rows(101));
    for (std::size_t i = 1; i < rows.size(); ++i)
      REQUIRE(pairs.target_length(rows[i - 1]) <= pairs.target_length(rows[i]));
  }
  const TokenPairs none(5, 5);
  REQUIRE(PairEvalBatches(none, 4).count() == 0);
}

TEST_CASE("several threads read batches of different epochs at once") {
  const TokenPairs pairs = random_pairs(300);
  const PairTrainBatches batches(pairs, 8, 3), reference(pairs, 8, 3);
  const std::int64_t epoch = batches.per_epoch(), most = 4 * epoch;
  std::vector<Ids> expected;
  for (std::int64_t i = 0; i < most; ++i) expected.push_back(reference.rows(i));
  std::vector<std::int64_t> wrong(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t n = 0; n < most; ++n) {
        const std::int64_t i = (n * epoch + n / 4 + static_cast<std::int64_t>(t)) % most;  // a new epoch each time
        wrong[t] += batches.rows(i) == expected[static_cast<std::size_t>(i)] ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(wrong == std::vector<std::int64_t>(4, 0));
}

TEST_CASE("pair batches refuse a size below 1, and training without pairs") {
  const TokenPairs pairs = random_pairs(3), none(5, 5);
  REQUIRE_THROWS_WITH(PairTrainBatches(pairs, 0, 1), ContainsSubstring("at least 1; got 0"));
  REQUIRE_THROWS_WITH(PairEvalBatches(pairs, -1), ContainsSubstring("at least 1; got -1"));
  require_refused([&] { PairTrainBatches(none, 1, 1); }, {"at least one pair"});
}
