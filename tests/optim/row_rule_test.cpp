// Tables whose rows are updated alone: the rule against a naive one, untouched rows, accumulation, thread counts.
#include "optim/row_rule.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "autograd/core/parallel.h"
#include "autograd/ops.h"
#include "autograd/tape.h"
#include "optim/clip.h"
#include "optim/parameter_optimizer.h"
#include "tests/catch.h"
#include "tests/max_or_nan.h"
#include "tests/optim/small_store.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr std::int64_t kRows = 912, kCols = 37;

// A table beside a matrix that is multiplied with it.
struct Tables {
  explicit Tables(DType dtype = DType::float64)
      : store(dtype),
        table(store.add("table", {kRows, kCols}, init::normal(1), ParamGroup::rows)),
        weight(store.add("weight", {kCols, kCols}, init::normal(0.3))) {
    store.add("fixed", {3}, init::constant(2), ParamGroup::frozen);
    store.seal(3);
  }
  // A pass over ids [60, 3] that are a function of the seed: some are missing, and small ones are frequent.
  static Tensor ids(std::uint64_t seed) {
    const RandomStream stream(seed, RandomPurpose::test);
    Tensor ids = empty({60, 3}, DType::int32);
    for (std::uint64_t i = 0; i < 180; ++i) {
      const std::uint64_t range = i % 2 == 0 ? 5 : kRows;
      ids.data<std::int32_t>()[i] = static_cast<std::int32_t>(stream.below(i, range)) - (i % 7 == 0 ? 1 : 0);
    }
    return ids;
  }
  void backward(std::uint64_t seed, double scale = 1) {
    const Tensor y = [&] {
      const Recording on(tape);
      return linear(embedding_sum(table, ids(seed)), weight);
    }();
    const RandomStream stream(seed, RandomPurpose::test, "cotangent");
    Tensor dy = empty_like(y);
    dispatch(dy.dtype(), [&]<class T>() {
      for (std::int64_t i = 0; i < dy.numel(); ++i)
        dy.data<T>()[i] = static_cast<T>(scale * stream.normal(static_cast<std::uint64_t>(i)));
    });
    tape.backward(y, dy);
  }

  ParameterStore store;
  Parameter &table, &weight;
  Tape tape;
};

const Moment& squares_of(Optimizer& optimizer) { return optimizer.moments().back(); }

}  // namespace

TEST_CASE("a table follows the rule of its rows, under every optimizer, and no other row changes") {
  for (const OptimizerOptions& options : kAllOptimizers) {
    Tables t;
    const std::unique_ptr<Optimizer> optimizer = make(t.store, options);
    optimizer->set_row_rate(3);
    REQUIRE(squares_of(*optimizer).name == kRowSquares);
    REQUIRE(squares_of(*optimizer).values.numel() == kRows);
    REQUIRE_FALSE(squares_of(*optimizer).may_be_negative);
    std::vector<double> value(kRows * kCols), sums(kRows);
    for (std::int64_t i = 0; i < kRows * kCols; ++i) value[static_cast<std::size_t>(i)] = t.table.value().at(i);
    for (std::uint64_t step = 0; step < 4; ++step) {
      t.backward(step);
      const Tensor gradient = t.table.gradient();
      for (std::size_t r = 0; r < kRows; ++r) {
        double square = 0;
        for (std::size_t j = 0; j < kCols; ++j)
          square += std::pow(0.5 * gradient.at(static_cast<std::int64_t>(r * kCols + j)), 2) / kCols;
        sums[r] += square;
        for (std::size_t j = 0; j < kCols && square > 0; ++j) {
          const std::size_t i = r * kCols + j;
          value[i] -= 3 * 0.01 * 0.5 * gradient.at(static_cast<std::int64_t>(i)) / (std::sqrt(sums[r]) + kRowSquareEps);
        }
      }
      optimizer->step(0.01, 0.5);
      double worst = 0;
      bool untouched = true;
      for (std::size_t i = 0; i < value.size(); ++i) {
        const double now = t.table.value().at(static_cast<std::int64_t>(i));
        worst = max_or_nan(worst, std::abs(now - value[i]));
        untouched = untouched && (sums[i / kCols] != 0 || now == value[i]);
      }
      REQUIRE(untouched);
      REQUIRE(worst < 1e-12);
      for (std::size_t r = 0; r < kRows; ++r)
        REQUIRE(squares_of(*optimizer).values.at(static_cast<std::int64_t>(r)) == Approx(sums[r]).epsilon(1e-12));
      REQUIRE_FALSE(t.table.row_gradient());
    }
  }
}

TEST_CASE("a gradient by rows is that of a parameter with all rows") {
  Tables t;
  t.backward(1);
  ParameterStore dense(DType::float64);
  Parameter& table = dense.add("table", {kRows, kCols}, init::values(t.table.value()));
  Parameter& weight = dense.add("weight", {kCols, kCols}, init::values(t.weight.value()));
  dense.seal();
  Tape tape;
  const Tensor y = [&] {
    const Recording on(tape);
    return linear(embedding_sum(table, Tables::ids(1)), weight);
  }();
  const RandomStream stream(1, RandomPurpose::test, "cotangent");
  Tensor dy = empty_like(y);
  for (std::int64_t i = 0; i < dy.numel(); ++i) dy.data<double>()[i] = stream.normal(static_cast<std::uint64_t>(i));
  tape.backward(y, dy);
  REQUIRE(same_bits(t.table.gradient(), table.gradient()));
  REQUIRE(same_bits(t.weight.gradient(), weight.gradient()));
  const RowGradient rows = t.table.row_gradient();
  const std::span<const std::int32_t> named = rows.rows.values<std::int32_t>();
  REQUIRE(named.size() > 50);
  REQUIRE(std::ranges::adjacent_find(named, std::ranges::greater_equal()) == named.end());
  REQUIRE(rows.values.shape() == Shape{rows.rows.numel(), kCols});
  REQUIRE(row_grad_norm(t.store) == Approx(global_norm(table.gradient())).epsilon(1e-12));
  REQUIRE(grad_norm(t.store) == Approx(global_norm(weight.gradient())).epsilon(1e-12));
}

TEST_CASE("gradients by rows of several passes are added as a tree, and stay when flat gradients are taken") {
  Tables t, single;
  std::vector<Tensor> parts;
  for (std::uint64_t pass = 0; pass < 5; ++pass) {
    t.backward(pass);
    t.store.take_gradients();
    single.store.clear_gradients();
    single.backward(pass);
    parts.push_back(single.table.gradient());
  }
  const Tensor expected = add(add(add(parts[0], parts[1]), add(parts[2], parts[3])), parts[4]);
  REQUIRE(same_bits(t.table.gradient(), expected));
  t.store.clear_gradients();
  REQUIRE_FALSE(t.table.row_gradient());
  REQUIRE(t.table.gradient().at(0) == 0);
}

TEST_CASE("training tables gives the same bits with any number of threads") {
  const int before = threads();
  std::vector<Tensor> values;
  for (const int n : {1, 2, 5}) {
    set_threads(n);
    Tables t(DType::float32);
    AdamW optimizer(t.store);
    for (std::uint64_t step = 0; step < 5; ++step) {
      t.backward(2 * step);
      t.backward(2 * step + 1);
      optimizer.step(0.01);
    }
    values.push_back(t.store.values().clone());
  }
  set_threads(before);
  REQUIRE(same_bits(values[0], values[1]));
  REQUIRE(same_bits(values[0], values[2]));
}

TEST_CASE("values, moments and the number of steps are the whole state: a restored run has the same bits") {
  Tables straight(DType::float32), resumed(DType::float32);
  AdamW optimizer(straight.store), restored(resumed.store);
  const auto train = [](Tables& t, Optimizer& o, std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t step = begin; step < end; ++step) {
      t.backward(step);
      o.step(0.01);
    }
  };
  train(straight, optimizer, 0, 3);
  const auto copy = [](const Tensor& from, Tensor& to) {
    std::ranges::copy(from.values<float>(), to.values<float>().begin());
  };
  copy(straight.store.values(), resumed.store.values());
  for (std::size_t i = 0; i < optimizer.moments().size(); ++i)
    copy(optimizer.moments()[i].values, restored.moments()[i].values);
  restored.set_steps(3);
  resumed.store.mark_changed();
  train(straight, optimizer, 3, 6);
  train(resumed, restored, 3, 6);
  REQUIRE(same_bits(straight.store.values(), resumed.store.values()));
  for (std::size_t i = 0; i < optimizer.moments().size(); ++i)
    REQUIRE(same_bits(optimizer.moments()[i].values, restored.moments()[i].values));
}

TEST_CASE("a store of tables alone is trained, and a table cannot be used as an ordinary matrix") {
  ParameterStore store;
  Parameter& table = store.add("table", {4, 2}, init::constant(0), ParamGroup::rows);
  store.seal();
  Tape tape;
  for (const OptimizerOptions& options : kAllOptimizers) {
    const std::unique_ptr<Optimizer> optimizer = make(store, options);
    const Tensor y = [&] {
      const Recording on(tape);
      return embedding_sum(table, tensor(std::vector<std::int32_t>{1, -1}, {1, 2}));
    }();
    tape.backward(y, full({1, 2}, DType::float32, 1));
    optimizer->step(0.5);
  }
  REQUIRE(table.value().at(0) == 0);
  REQUIRE(table.value().at(2) == Approx(-0.5 * static_cast<double>(kAllOptimizers.size())));
  const Tensor other = zeros({4, 2}, DType::float32);
  const std::function<Tensor()> uses[] = {[&] { return sum(table); }, [&] { return add(table, other); },
                                          [&] { return add(other, table); }};
  for (const std::function<Tensor()>& use : uses) {
    const Tensor y = [&] {
      const Recording on(tape);
      return use();
    }();
    REQUIRE_THROWS_WITH(tape.backward(y, full(y.shape(), DType::float32, 1)),
                        ContainsSubstring("parameter table is a table whose gradient is kept by rows"));
  }
  ParameterStore vectors;
  REQUIRE_THROWS_WITH(vectors.add("vector", {4}, init::constant(0), ParamGroup::rows), ContainsSubstring("[R, C]"));
}
