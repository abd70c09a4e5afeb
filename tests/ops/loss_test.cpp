// cross_entropy, mse and embedding as ops: against compositions of simple ops, ignored targets, and the inputs that
// they reject.
#include <algorithm>
#include <array>
#include <cmath>

#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "tests/catch.h"
#include "tests/ops/op_case.h"
#include "tests/tensors.h"

using namespace maki;
using namespace maki::tests;

namespace {

// cross_entropy composed of simple ops: −Σ weight · log_softmax over the rows whose target is not ignored.
Tensor composed_cross_entropy(const Tensor& logits, const Tensor& targets, const CrossEntropy& options) {
  const std::int64_t rows = logits.shape().rows(), cols = logits.shape().cols();
  Tensor weight = zeros({rows, cols}, DType::float64);
  double counted = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int32_t target = targets.data<std::int32_t>()[i];
    if (target == options.ignored) continue;
    ++counted;
    for (std::int64_t j = 0; j < cols; ++j) {
      weight.data<double>()[i * cols + j] =
          options.label_smoothing / static_cast<double>(cols) + (j == target ? 1 - options.label_smoothing : 0);
    }
  }
  const double factor = options.sum || counted == 0 ? 1 : 1 / counted;
  return scale(sum(mul(reshape(log_softmax(logits), {rows, cols}), weight)), -factor);
}

void require_equivalent(const Case& a, const Case& b) {
  BoundCase bound_a(a, DType::float64), bound_b(b, DType::float64);
  const Evaluation one = evaluate(bound_a), other = evaluate(bound_b);
  REQUIRE(one.output.shape() == other.output.shape());
  REQUIRE(relative_error(one.output, other.output, 1e-3) < 1e-13);
  REQUIRE(one.gradients.size() == 1);
  REQUIRE(relative_error(one.gradients[0], other.gradients[0], 1e-3) < 1e-13);
}

}  // namespace

TEST_CASE("cross_entropy agrees with a composition of simple ops") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Draw draw(seed);
    const Shape shape = draw.shape(3);
    const Tensor targets = draw.integers({shape[0], shape[1]}, -1, static_cast<std::int32_t>(shape.cols() - 1));
    const CrossEntropy options{.label_smoothing = draw.coin() ? 0.2 : 0, .sum = draw.coin()};
    const Tensor logits = draw.normals(shape, 0, 2);
    require_equivalent(
        {{logits}, [&](const std::vector<Tensor>& v) { return cross_entropy(v[0], targets, options); }},
        {{logits}, [&](const std::vector<Tensor>& v) { return composed_cross_entropy(v[0], targets, options); }});
  }
}

TEST_CASE("embedding agrees with a product with one-hot rows") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Draw draw(seed);
    const Tensor table = draw.normals({11, draw.extent()}), ids = draw.integers({draw.extent()}, 0, 10);
    require_equivalent(
        {{table}, [&](const std::vector<Tensor>& v) { return embedding(v[0], ids); }},
        {{table}, [&](const std::vector<Tensor>& v) { return matmul(one_hot(ids, 11, DType::float64), v[0]); }});
  }
}

// A product with zeros and ones is exact, and both ways add the gradients of an id in the same order and in the same
// blocks of positions.
TEST_CASE("embedding has the bits of a product with one-hot rows, values and gradients") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Draw draw(seed);
    const std::int64_t count = std::array{3, 40, 700, 1500}[seed % 4];
    const Tensor table = draw.normals({22, draw.extent()});
    const Tensor ids = draw.integers({count}, 0, seed % 3 == 0 ? 1 : 20);
    const Tensor cotangent = draw.normals({count, table.shape()[1]});
    Tensor values[2], gradients[2];
    for (int way = 0; way < 2; ++way) {
      Tape tape;
      Tensor watched;
      values[way] = [&] {
        const Recording on(tape);
        watched = tape.watch(table);
        return way == 0 ? embedding(watched, ids) : matmul(one_hot(ids, 22, DType::float64), watched);
      }();
      tape.backward(values[way], cotangent);
      gradients[way] = tape.gradient(watched);
    }
    REQUIRE(same_bits(values[0], values[1]));
    REQUIRE(sum(abs(gradients[0])).item() > 0);
    REQUIRE(same_bits(gradients[0], gradients[1]));
  }
}

TEST_CASE("cross_entropy: the loss of uniform logits is log V, and without any target it is 0") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Tensor logits = full({4, 65}, dtype, 0.25);
    const Tensor targets = tensor(std::vector<std::int32_t>{0, 64, -1, 7}, {4});
    REQUIRE(cross_entropy(logits, targets).item() == Approx(std::log(65.0)).epsilon(1e-7));
    REQUIRE(cross_entropy(logits, targets, {.sum = true}).item() == Approx(3 * std::log(65.0)).epsilon(1e-7));
    REQUIRE(cross_entropy(logits, targets, {.label_smoothing = 1}).item() == Approx(std::log(65.0)).epsilon(1e-7));
    const Tensor none = full({4}, DType::int32, -1);
    const Case drawn{{full({4, 65}, DType::float64, std::nan(""))},
                     [&](const std::vector<Tensor>& v) { return cross_entropy(v[0], none); }};
    BoundCase bound(drawn, dtype);
    const Evaluation result = evaluate(bound);
    REQUIRE(result.output.item() == 0);
    for (std::int64_t i = 0; i < 4 * 65; ++i) REQUIRE(result.gradients[0].at(i) == 0);
  }
}

TEST_CASE("embedding: rows that no id refers to have a gradient of exactly 0") {
  for (const std::int64_t vocabulary : {5, 3000}) {
    const Tensor ids = tensor(std::vector<std::int32_t>{3, 1, 3}, {3});
    const Case drawn{{full({vocabulary, 6}, DType::float64, 1)},
                     [&](const std::vector<Tensor>& v) { return embedding(v[0], ids); }};
    BoundCase bound(drawn, DType::float32);
    const Evaluation result = evaluate(bound);
    for (std::int64_t i = 0; i < vocabulary * 6; ++i) {
      REQUIRE((result.gradients[0].at(i) != 0) == (i / 6 == 1 || i / 6 == 3));
    }
  }
}

TEST_CASE("losses: the messages for inputs that they reject") {
  const Tensor table = zeros({5, 3}, DType::float32), logits = zeros({2, 2, 5}, DType::float32);
  const auto ids = [](std::vector<std::int32_t> values) {
    const auto n = static_cast<std::int64_t>(values.size());
    return tensor(values, {n});
  };
  REQUIRE_THAT(refusal([&] {
                 embedding(table, ids({4, 5}));
               }),
               ContainsSubstring("ids must be in [0, 5), the rows of the table; got 5 at index 1 of ids of shape [2]"));
  REQUIRE_THAT(refusal([&] { embedding(table, ids({-1})); }), ContainsSubstring("got -1 at index 0"));
  REQUIRE_THAT(refusal([&] { embedding(table, table); }), ContainsSubstring("ids must be int32; got float32"));
  REQUIRE_THAT(refusal([&] { embedding(logits, ids({0})); }), ContainsSubstring("[V, C]; got [2, 2, 5]"));
  REQUIRE_THAT(refusal([&] { embedding(table, Tensor()); }), ContainsSubstring("empty tensor"));
  REQUIRE_THAT(refusal([&] {
                 embedding(table, zeros({1, 1, 1, 1, 1}, DType::int32));
               }),
               ContainsSubstring("at most 4 axes"));
  const Tensor targets = full({2, 2}, DType::int32, 1);
  REQUIRE_THAT(refusal([&] {
                 cross_entropy(logits, ids({1, 2}));
               }),
               ContainsSubstring("got logits [2, 2, 5] and targets [2]"));
  REQUIRE_THAT(
      refusal([&] {
        cross_entropy(logits, full({2, 2}, DType::int32, 5));
      }),
      ContainsSubstring("targets must be in [0, 5), or -1 to be ignored; got 5 at index 0 of targets of shape [2, 2]"));
  REQUIRE_THAT(refusal([&] {
                 cross_entropy(logits, full({2, 2}, DType::int32, -1), {.ignored = -100});
               }),
               ContainsSubstring("or -100 to be ignored; got -1"));
  REQUIRE_THAT(refusal([&] { cross_entropy(logits, targets, {.label_smoothing = 1.5}); }),
               ContainsSubstring("got 1.5"));
  REQUIRE_THAT(refusal([&] { cross_entropy(logits, targets, {.label_smoothing = std::nan("")}); }),
               ContainsSubstring("got nan"));
  REQUIRE_THAT(refusal([&] { cross_entropy(logits, targets, {.label_smoothing = -0.5}); }),
               ContainsSubstring("got -0.5"));
  REQUIRE_THAT(refusal([&] { cross_entropy(logits, logits); }), ContainsSubstring("targets must be int32"));
  REQUIRE_THAT(refusal([&] { cross_entropy(zeros({}, DType::float32), targets); }), ContainsSubstring("last axis"));
  const auto refused_weight = [&](const Shape& x, const Shape& weight) {
    return refusal([&] { linear_cross_entropy(zeros(x, DType::float32), zeros(weight, DType::float32), targets); });
  };
  REQUIRE(refused_weight({2, 2, 3}, {5, 4}) ==
          "linear_cross_entropy: weight must be [V, C] with C the last extent of x; got x [2, 2, 3], weight [5, 4]");
  REQUIRE_THAT(refused_weight({2, 2, 3}, {5, 1, 3}), ContainsSubstring("got x [2, 2, 3], weight [5, 1, 3]"));
  REQUIRE_THAT(refused_weight({}, {5, 3}), ContainsSubstring("got x [], weight [5, 3]"));
  REQUIRE_THAT(refused_weight({2, 3}, {5, 3}), ContainsSubstring("got logits [2, 5] and targets [2, 2]"));
  const auto refused_expected = [&](const Shape& x, const Shape& expected) {
    return refusal([&] { expected_cross_entropy(zeros(x, DType::float32), zeros(expected, DType::float32)); });
  };
  REQUIRE(refused_expected({2, 5}, {5, 2}) ==
          "expected_cross_entropy: logits and expected probabilities must both be [… V]; got [2, 5] and [5, 2]");
  REQUIRE_THAT(refused_expected({}, {}), ContainsSubstring("must both be [… V]; got [] and []"));
}

TEST_CASE("mse is the mean or the sum of the squared differences, and its gradients are opposite") {
  ParameterStore store(DType::float64);
  const Parameter& prediction = store.add("prediction", {2, 2}, init::values(tensor<double>({1, 2, 3, 4}, {2, 2})));
  const Parameter& target = store.add("target", {2, 2}, init::values(tensor<double>({1, 0, 6, 4.5}, {2, 2})));
  store.seal();
  const double squares = 0 + 4 + 9 + 0.25;
  for (const bool sum : {false, true}) {
    store.clear_gradients();
    Tape tape;
    const Tensor loss = [&] {
      const Recording on(tape);
      return mse(prediction, target, {.sum = sum});
    }();
    REQUIRE(loss.item() == (sum ? squares : squares / 4));
    tape.backward(loss);
    for (std::int64_t i = 0; i < 4; ++i) {
      const double slope = 2 * (prediction.value().at(i) - target.value().at(i)) / (sum ? 1 : 4);
      REQUIRE(prediction.gradient().at(i) == slope);
      REQUIRE(target.gradient().at(i) == -slope);
    }
  }
  REQUIRE(mse(zeros({0}, DType::float32), zeros({0}, DType::float32)).item() == 0);
  REQUIRE_THROWS_WITH(mse(prediction, zeros({2, 1}, DType::float64)), ContainsSubstring("got [2, 2] and [2, 1]"));
  REQUIRE_THROWS_WITH(mse(prediction, zeros({2, 2}, DType::float32)), ContainsSubstring("float64 and float32"));
}

TEST_CASE("embedding_sum refuses ids outside the table, and shapes that do not fit") {
  const Tensor table = zeros({4, 3}, DType::float32);
  const auto ids = [](std::int32_t id) { return tensor(std::vector<std::int32_t>{0, id}, {1, 2}); };
  REQUIRE(embedding_sum(table, ids(-1)).shape() == Shape{1, 3});
  for (const std::int32_t id : {-2, 4}) {
    const std::string said = refusal([&] { embedding_sum(table, ids(id)); });
    REQUIRE_THAT(said, ContainsSubstring("must be in [0, 4)") && ContainsSubstring("got " + std::to_string(id)));
  }
  REQUIRE_THAT(refusal([&] { embedding_sum(zeros({4}, DType::float32), ids(0)); }), ContainsSubstring("[V, C]"));
  REQUIRE_THAT(refusal([&] { embedding_sum(table, zeros({}, DType::int32)); }), ContainsSubstring("[… K]"));
}
