// Gradients of tensors that are not parameters: Tape::watch() and Tape::gradient().
#include <array>

#include "autograd/core/check.h"
#include "autograd/gradcheck.h"
#include "autograd/ops.h"
#include "autograd/tape.h"
#include "tests/catch.h"

using namespace maki;

namespace {

struct WatchFixture {
  ParameterStore store{DType::float64};
  Parameter& x = store.add("x", {3, 4}, init::normal(1));
  Parameter& weight = store.add("weight", {5, 4}, init::normal(1));
  Tape tape;
  WatchFixture() { store.seal(/*seed=*/3); }

  // x is used twice, so that its gradient is a sum.
  Tensor loss(const Tensor& at) const { return mean(mul(tanh(linear(at, weight)), sum(at, {1}, true))); }

  template <class Body>
  auto on_tape(const Body& body) {
    const Recording on(tape, RandomContext{.seed = 1});
    return body();
  }
};

void require_equal(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  REQUIRE(a.dtype() == b.dtype());
  for (std::int64_t i = 0; i < a.numel(); ++i) REQUIRE(a.at(i) == b.at(i));
}

}  // namespace

TEST_CASE_METHOD(WatchFixture,
                 "watch: an input's gradient is that of a parameter with its values, which gradcheck confirms") {
  for (const GradcheckResult& result : gradcheck(store, [&] { return loss(x); })) REQUIRE(result.passed(1e-9));
  tape.backward(on_tape([&] { return loss(x); }));
  const Tensor expected = x.gradient().clone(), of_weight = weight.gradient().clone();
  store.clear_gradients();

  const Tensor input = x.value().clone();
  Tensor watched;
  tape.backward(on_tape([&] { return loss(watched = tape.watch(input)); }));
  require_equal(tape.gradient(watched), expected);
  require_equal(weight.gradient(), of_weight);
  REQUIRE(x.gradient().at(0) == 0);
}

TEST_CASE_METHOD(WatchFixture,
                 "watch: intermediate results and parameters are kept, and their gradients flow on unchanged") {
  const auto network = [&](const Tensor& at, Tensor* hidden) {
    Tensor h = linear(at, weight);
    if (hidden != nullptr) h = *hidden = tape.watch(h);
    return sum(mul(h, h));
  };
  tape.backward(on_tape([&] { return network(x, nullptr); }));
  const Tensor of_x = x.gradient().clone(), of_weight = weight.gradient().clone();
  store.clear_gradients();

  Tensor hidden, parameter;
  tape.backward(on_tape([&] { return network(parameter = tape.watch(x), &hidden); }));
  require_equal(tape.gradient(hidden), scale(linear(x, weight), 2));
  require_equal(tape.gradient(parameter), of_x);
  require_equal(x.gradient(), of_x);
  require_equal(weight.gradient(), of_weight);
}

TEST_CASE_METHOD(WatchFixture,
                 "watch: several tensors, views of another shape, a cotangent, a tensor without influence") {
  std::array<Tensor, 3> watched;
  const Tensor a = full({2, 3}, DType::float32, 2), cotangent = tensor<float>({1, 2, 3, 4, 5, 6}, {6});
  const Tensor y = on_tape([&] {
    for (Tensor& w : watched) w = tape.watch(a);
    const Tensor flat = reshape(watched[0], {6});
    return add(mul(flat, flat), reshape(watched[1], {6}));
  });
  tape.backward(y, cotangent);
  for (std::int64_t i = 0; i < 6; ++i) {
    REQUIRE(tape.gradient(watched[0]).at(i) == 4 * cotangent.at(i));
    REQUIRE(tape.gradient(watched[1]).at(i) == cotangent.at(i));
    REQUIRE(tape.gradient(watched[2]).at(i) == 0);
  }
  REQUIRE(tape.gradient(watched[0]).shape() == Shape{2, 3});
  REQUIRE(tape.gradient(reshape(watched[0], {3, 2})).shape() == Shape{3, 2});
}

TEST_CASE_METHOD(WatchFixture, "watch: draws no random numbers") {
  const auto drop = [&](bool watching) {
    return on_tape([&] {
      const Tensor at = watching ? tape.watch(x) : x.value();
      return dropout(at, 0.5).clone();
    });
  };
  const Tensor with = drop(true);
  tape.clear();
  require_equal(with, drop(false));
}

TEST_CASE_METHOD(WatchFixture, "watch: a gradient is kept until the next backward or clear, and a copy of it beyond") {
  Tensor watched;
  const auto step = [&](double factor) {
    const Tensor y = on_tape([&] { return sum(scale(watched = tape.watch(full({2}, DType::float64, 1)), factor)); });
    tape.backward(y);
  };
  step(3);
  const Tensor first = watched, kept = tape.gradient(watched);
  REQUIRE(kept.at(1) == 3);
  step(5);
  REQUIRE(tape.gradient(watched).at(1) == 5);
  REQUIRE(kept.at(1) == 3);
  REQUIRE_THROWS_WITH(tape.gradient(first), ContainsSubstring("last backward pass"));
  tape.clear();
  REQUIRE_THROWS_WITH(tape.gradient(watched), ContainsSubstring("before the next backward() or clear()"));
}

TEST_CASE_METHOD(WatchFixture, "watch: each kind of misuse has its own message") {
  REQUIRE_THROWS_WITH(tape.watch(x), ContainsSubstring("no Recording on this tape"));
  on_tape([&] {
    REQUIRE_THROWS_WITH(tape.watch(Tensor()), ContainsSubstring("an empty tensor"));
    REQUIRE_THROWS_WITH(tape.watch(zeros({2}, DType::int32)), ContainsSubstring("int32"));
    Tape other;
    REQUIRE_THROWS_WITH(other.watch(x), ContainsSubstring("no Recording on this tape"));
    return 0;
  });
  Tensor watched, unwatched;
  const Tensor y = on_tape([&] {
    watched = tape.watch(x);
    return sum(unwatched = scale(watched, 2));
  });
  REQUIRE_THROWS_WITH(tape.gradient(watched), ContainsSubstring("last backward pass"));
  tape.backward(y);
  REQUIRE(tape.gradient(watched).at(0) == 2);
  for (const Tensor& wrong : {unwatched, watched.detach(), x.value(), Tensor()}) {
    REQUIRE_THROWS_WITH(tape.gradient(wrong), ContainsSubstring("not one that watch() returned"));
  }
  REQUIRE_THROWS_AS(on_tape([&] { return scale(watched, 2); }), Error);  // of a recording that is over
}

TEST_CASE_METHOD(WatchFixture, "watch: a backward pass that fails keeps no gradient") {
  Tensor watched;
  const Tensor y = on_tape([&] {
    const Tensor bad = record("bad", Tensor(x.value().detach()), {x}, [](Grads&) {});
    return sum(watched = tape.watch(bad));
  });
  REQUIRE_THROWS_WITH(tape.backward(y), ContainsSubstring("delivered no gradient"));
  REQUIRE_THROWS_WITH(tape.gradient(watched), ContainsSubstring("last backward pass"));
}
