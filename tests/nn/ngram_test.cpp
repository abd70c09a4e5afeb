// The rows of n-grams, the tokens that generation remembers, and what a table adds to a model.
#include "nn/ngram.h"

#include <cmath>
#include <set>

#include "optim/adam.h"
#include "tests/catch.h"
#include "tests/nn/small_gpt.h"

using namespace maki;
using namespace maki::tests;

namespace {

struct SmallTable {
  SmallTable(std::int64_t vocab_size, const NgramOptions& options)
      : ngram(Scope(store) / "ngram", vocab_size, 4, options) {}
  ParameterStore store;
  NgramEmbedding ngram;
};

Tensor ids_of(const std::vector<std::int32_t>& ids) { return tensor(ids, {1, std::ssize(ids)}); }

}  // namespace

TEST_CASE("an order of which every n-gram has a row uses all its rows, and each for one n-gram") {
  const SmallTable table(5, {.orders = {2, 3}, .rows = 125});
  REQUIRE(table.ngram.weight.shape() == Shape{25 + 125, 4});
  std::set<std::int32_t> pairs, triples;
  for (std::int32_t i = 0; i < 125; ++i) {
    const Tensor rows = table.ngram.rows(ids_of({i / 25, i / 5 % 5, i % 5}));
    REQUIRE(rows.shape() == Shape{1, 3, 2});
    const std::span<const std::int32_t> row = rows.values<std::int32_t>();
    REQUIRE((row[0] == -1 && row[1] == -1 && row[3] == -1));  // nothing stands before the first tokens
    REQUIRE(row[4] == i % 25);
    REQUIRE(row[5] == 25 + i);
    pairs.insert(row[2]);
    pairs.insert(row[4]);
    triples.insert(row[5]);
  }
  REQUIRE(pairs.size() == 25);
  REQUIRE(triples.size() == 125);
}

TEST_CASE("n-grams of other orders are spread over the rows by hash, whatever stands before them") {
  const SmallTable table(200, {.orders = {2, 4}, .rows = 1000});
  REQUIRE(table.ngram.weight.shape() == Shape{2000, 4});
  std::vector<int> hits(2000);
  for (std::int32_t i = 0; i < 20000; ++i) {
    const Tensor rows = table.ngram.rows(ids_of({i % 7, i / 200 % 200, i % 200, 3, i % 200}));
    const std::int32_t four = rows.data<std::int32_t>()[9], two = rows.data<std::int32_t>()[4];
    REQUIRE((two >= 0 && two < 1000 && four >= 1000 && four < 2000));
    ++hits[static_cast<std::size_t>(four)];
    if (i < 1000)
      REQUIRE(four == table.ngram.rows(ids_of({i / 200 % 200, i % 200, 3, i % 200})).data<std::int32_t>()[7]);
  }
  // 20 of 20,000 are expected in each row; the deviation of a Poisson distribution is 4.5.
  for (std::size_t row = 1000; row < 2000; ++row) {
    INFO("row " << row << ": " << hits[row]);
    REQUIRE(hits[row] > 0);
    REQUIRE(hits[row] < 50);
  }
}

TEST_CASE("a reversed n-gram has another row, and equal n-grams have one") {
  const SmallTable table(100, {.orders = {3}, .rows = 5000});
  const auto row = [&](std::int32_t a, std::int32_t b, std::int32_t c) {
    return table.ngram.rows(ids_of({a, b, c})).data<std::int32_t>()[2];
  };
  REQUIRE(row(1, 2, 3) != row(3, 2, 1));
  REQUIRE(row(1, 2, 3) != row(2, 1, 3));
  REQUIRE(row(0, 0, 1) != row(0, 1, 0));
  REQUIRE(row(1, 2, 3) == row(1, 2, 3));
}

TEST_CASE("recent tokens are the last ones, however they arrive, and continue n-grams across calls") {
  const SmallTable table(9, {.orders = {2, 4}, .rows = 6561});
  const Tensor ids = random_ids(3, 12, 9, 5), all = table.ngram.rows(ids);
  for (const std::int64_t piece : {1, 2, 3, 5, 12}) {
    RecentTokens recent(table.ngram.longest() - 1);
    for (std::int64_t begin = 0; begin < 12; begin += piece) {
      const std::int64_t count = std::min<std::int64_t>(piece, 12 - begin);
      Tensor part = empty({3, count}, DType::int32);
      for (std::int64_t i = 0; i < 3 * count; ++i)
        part.data<std::int32_t>()[i] = ids.data<std::int32_t>()[i / count * 12 + begin + i % count];
      const Tensor rows = table.ngram.rows(part, recent.ids());
      for (std::int64_t i = 0; i < rows.numel(); ++i)
        REQUIRE(rows.at(i) == all.at(i / (2 * count) * 24 + begin * 2 + i % (2 * count)));
      recent.append(part);
      REQUIRE(recent.ids().shape() == Shape{3, std::min<std::int64_t>(3, begin + count)});
    }
    const Tensor last = recent.ids().clone();
    recent.reorder(std::vector<std::int32_t>{2, 0, 0, 1});
    for (std::int64_t t = 0; t < 3; ++t) {
      REQUIRE(recent.ids().at(t) == last.at(6 + t));
      REQUIRE(recent.ids().at(6 + t) == last.at(t));
      REQUIRE(recent.ids().at(9 + t) == last.at(3 + t));
    }
    recent.clear();
    REQUIRE_FALSE(recent.ids());
  }
}

TEST_CASE("a model with tables begins as the model without them, and only the rows of its batch learn") {
  TransformerConfig config = kSmall;
  SmallGpt plain(config);
  config.ngram_orders = {2, 3}, config.ngram_rows = 49;
  SmallGpt gpt(config);
  const Tensor ids = tensor(std::vector<std::int32_t>{1, 2, 1, 2, 1}, {1, 5});
  REQUIRE(same_bits(gpt.model.logits(ids), plain.model.logits(ids)));
  Tape tape;
  AdamW optimizer(gpt.store);
  for (int step = 0; step < 3; ++step) {
    const Tensor loss = [&] {
      const Recording on(tape);
      return gpt.model.loss(ids, ids);
    }();
    tape.backward(loss);
    optimizer.step(1e-2);
  }
  const Tensor rows = gpt.model.input.ngram->rows(ids);
  std::set<std::int32_t> used(rows.values<std::int32_t>().begin(), rows.values<std::int32_t>().end());
  used.erase(-1);
  REQUIRE(used.size() >= 3);
  const Tensor& table = gpt.model.input.ngram->weight.value();
  for (std::int32_t r = 0; r < table.shape()[0]; ++r) {
    double size = 0;
    for (std::int64_t j = 0; j < config.n_embd; ++j) size += std::abs(table.at(r * config.n_embd + j));
    INFO("row " << r);
    REQUIRE((size > 0) == used.contains(r));
  }
}

TEST_CASE("impossible tables are rejected with messages that contain the values") {
  const auto build = [](const NgramOptions& options) { SmallTable(5, options); };
  REQUIRE_THROWS_WITH(build({.orders = {}}), ContainsSubstring("ascending numbers from 2 to 8"));
  REQUIRE_THROWS_WITH(build({.orders = {3, 2}}), ContainsSubstring("got 3,2"));
  REQUIRE_THROWS_WITH(build({.orders = {2, 2}}), ContainsSubstring("got 2,2"));
  REQUIRE_THROWS_WITH(build({.orders = {1}}), ContainsSubstring("got 1"));
  REQUIRE_THROWS_WITH(build({.orders = {9}}), ContainsSubstring("got 9"));
  REQUIRE_THROWS_WITH(build({.orders = {2}, .rows = 0}), ContainsSubstring("got 0"));
  REQUIRE_THROWS_WITH(build({.orders = {2}, .dropout = 1}), ContainsSubstring("[0, 1); got 1"));
  using Orders = std::vector<std::int64_t>;
  REQUIRE(ngram_orders_named("none").empty());
  REQUIRE(ngram_orders_named("2") == Orders{2});
  REQUIRE(ngram_orders_named("2,3,8") == Orders{2, 3, 8});
  for (const char* const text :
       {"", "2,", ",2", "2 ,3", "02", "1", "9", "3,2", "2,2", "2;3", "two", "-2", "2,3,none"}) {
    INFO(text);
    REQUIRE_THROWS_WITH(ngram_orders_named(text), ContainsSubstring("ngram_orders: must be none or"));
  }
}
