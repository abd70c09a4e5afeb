// The tape alone, with ops defined here: order, sinks, repeated inputs, memory, and the messages for misuse.
#include "autograd/tape.h"

#include <pthread.h>

#include "autograd/core/check.h"
#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "autograd/recompute.h"
#include "tests/catch.h"

using namespace maki;

namespace {

// y = Σ_i w_i x_i elementwise, with constant weights: the simplest op of several inputs.
Tensor weighted(std::vector<std::pair<double, Tensor>> terms) {
  Tensor y = zeros(terms[0].second.shape(), DType::float64);
  std::vector<const Tensor*> inputs;
  for (const auto& [w, x] : terms) {
    for (std::int64_t i = 0; i < y.numel(); ++i) y.data<double>()[i] += w * x.at(i);
    inputs.push_back(&x);
  }
  Tensor* const outputs[] = {&y};
  record("weighted", outputs, inputs, [terms](Grads& g) {
    for (std::size_t k = 0; k < terms.size(); ++k) {
      const Sink<double> dx = g.in<double>(static_cast<int>(k));
      if (!dx) continue;
      for (std::int64_t i = 0; i < terms[k].second.numel(); ++i) dx.put(i, terms[k].first * g.out<double>()[i]);
    }
  });
  return y;
}

Tensor pass_to_both(const Tensor& a, const Tensor& b) {
  Tensor y = empty_like(a);
  for (std::int64_t i = 0; i < y.numel(); ++i) y.data<double>()[i] = a.at(i) + b.at(i);
  return record("pass_both", y, {a, b}, [](Grads& g) {
    g.pass(0);
    g.pass(1);
  });
}

// A chain of a million nodes, of which each passes its gradient on.
Tensor long_chain(Tape& tape, const Tensor& start) {
  const Recording on(tape);
  Tensor y = start;
  for (int i = 0; i < 1'000'000; ++i) {
    y = record("link", Tensor(y.detach()), {y}, [](Grads& g) { g.pass(0); });
  }
  return y;
}

struct TapeFixture {
  ParameterStore store{DType::float64};
  Parameter& a = store.add("a", {2}, init::constant(1));
  Parameter& b = store.add("b", {2}, init::constant(2));
  Tape tape;
  TapeFixture() { store.seal(); }

  template <class Body>
  Tensor on_tape(Body body) {
    const Recording on(tape);
    return body();
  }
  void backward(const Tensor& y) { tape.backward(y, full(y.shape(), DType::float64, 1)); }
};

}  // namespace

TEST_CASE_METHOD(TapeFixture, "gradients flow through chains, diamonds and repeated inputs") {
  const Tensor y = on_tape([&] {
    const Tensor u = weighted({{2, a}, {3, a}, {5, b}});   // a twice in one node
    const Tensor v = weighted({{7, u}, {1, b}});           // u used here …
    return weighted({{1, u}, {11, v}, {13, u}, {17, v}});  // … and here twice
  });
  backward(y);
  const double du = 1 + 13 + 7 * 28;
  REQUIRE(a.gradient().at(0) == 5 * du);
  REQUIRE(b.gradient().at(1) == 5 * du + 28);
  REQUIRE(tape.size() == 0);
}

TEST_CASE("the gradient of an input that is used twice is the sum of both, and equal parameters remain two") {
  ParameterStore matrices(DType::float64);
  const Parameter& x = matrices.add("x", {2, 3}, init::values(tensor<double>({1, -2, 3, 4, 5, -6}, {2, 3})));
  const Parameter& y = matrices.add("y", {2, 3}, init::constant(3));
  const Parameter& z = matrices.add("z", {2, 3}, init::constant(3));
  matrices.seal();
  const Tensor ones = full({2, 3}, DType::float64, 1);
  Tape tape;
  const auto require_gradient = [&](const Parameter& parameter, const auto& op, const Tensor& cotangent,
                                    const std::vector<double>& expected) {
    matrices.clear_gradients();
    const Tensor result = [&] {
      const Recording on(tape);
      return op();
    }();
    tape.backward(result, cotangent);
    for (std::int64_t i = 0; i < 6; ++i) REQUIRE(parameter.gradient().at(i) == expected[static_cast<std::size_t>(i)]);
  };
  require_gradient(x, [&] { return mul(x, x); }, ones, {2, -4, 6, 8, 10, -12});  // 2x
  // Of X Xᵀ for the cotangent D: (D + Dᵀ) X.
  require_gradient(x, [&] { return matmul(x, x, false, true); }, tensor<double>({1, 2, 3, 5}, {2, 2}),
                   {22, 21, -24, 45, 40, -45});
  for (const Parameter* const parameter : {&y, &z}) {
    require_gradient(
        *parameter, [&] { return add(y, z); }, ones, std::vector<double>(6, 1));
  }
}

TEST_CASE_METHOD(TapeFixture, "pass shares blocks but never lets one gradient corrupt another") {
  const Tensor y = on_tape([&] {
    const Tensor u = weighted({{1, a}}), v = weighted({{1, b}});
    const Tensor s = pass_to_both(u, v);  // both get s's gradient
    const Tensor t = pass_to_both(u, u);  // both inputs are u
    return weighted({{1, s}, {10, t}, {100, u}});
  });
  const Tensor cotangent = full({2}, DType::float64, 1);
  tape.backward(y, cotangent);
  REQUIRE(cotangent.at(0) == 1);
  REQUIRE(a.gradient().at(0) == 1 + 20 + 100);
  REQUIRE(b.gradient().at(0) == 1);
}

TEST_CASE_METHOD(TapeFixture, "a second backward adds until the gradients are cleared") {
  for (int round = 1; round <= 3; ++round) {
    backward(on_tape([&] { return weighted({{2, a}}); }));
    REQUIRE(a.gradient().at(0) == 2 * round);
    REQUIRE(b.gradient().at(0) == 0);
  }
  store.clear_gradients();
  REQUIRE(a.gradient().at(0) == 0);
}

TEST_CASE_METHOD(TapeFixture, "gradients flow through reshape and stop at detach") {
  backward(on_tape([&] {
    const Tensor u = weighted({{3, a}});
    return weighted({{1, reshape(u, {2, 1})}, {5, reshape(u.detach(), {2, 1})}, {7, reshape(a.value(), {2, 1})}});
  }));
  REQUIRE(a.gradient().at(1) == 3 + 7);
}

TEST_CASE_METHOD(TapeFixture, "without a recording there is no graph") {
  REQUIRE_FALSE(weighted({{2, a}}).requires_grad());
  REQUIRE(tape.size() == 0);
  const Tensor constant = zeros({2}, DType::float64);
  on_tape([&] { return weighted({{2, constant}}); });
  REQUIRE(tape.size() == 0);
}

TEST_CASE_METHOD(TapeFixture, "each kind of misuse has its own message") {
  const auto one = [&] { return on_tape([&] { return weighted({{2, a}}); }); };
  Tensor y = one();
  backward(y);
  REQUIRE_THROWS_WITH(backward(y), ContainsSubstring("consumed"));
  REQUIRE_THROWS_WITH(backward(weighted({{2, a}})), ContainsSubstring("not recorded"));
  REQUIRE_THROWS_WITH(tape.backward(one()), ContainsSubstring("one element"));
  REQUIRE_THROWS_WITH(on_tape([&] { return weighted({{1, y}}); }), ContainsSubstring("another tape"));
  y = one();
  store.mark_changed();
  REQUIRE_THROWS_WITH(backward(y), ContainsSubstring("parameter a was updated"));
  REQUIRE(tape.size() == 0);
  Tape other;
  y = one();
  REQUIRE_THROWS_AS(other.backward(y, y), Error);
  REQUIRE_THROWS_WITH(tape.backward(y, zeros({3}, DType::float64)), ContainsSubstring("cotangent"));
  y = one();
  REQUIRE_THROWS_WITH(tape.backward(y, zeros({2}, DType::float32)),
                      ContainsSubstring("cotangent") && ContainsSubstring("float64 [2]; got float32 [2]"));
}

TEST_CASE_METHOD(TapeFixture, "a closure that omits, repeats or mistypes a gradient is reported") {
  const auto bad = [&](auto closure) {
    const Tensor y = on_tape([&] { return record("bad", zeros({2}, DType::float64), {a}, std::move(closure)); });
    backward(y);
  };
  REQUIRE_THROWS_WITH(bad([](Grads&) {}), ContainsSubstring("delivered no gradient"));
  REQUIRE_THROWS_WITH(bad([](Grads& g) { g.in<double>(0), g.in<double>(0); }), ContainsSubstring("twice"));
  REQUIRE_THROWS_WITH(bad([](Grads& g) { g.in<float>(0); }), ContainsSubstring("float32"));
  REQUIRE_THROWS_WITH(bad([](Grads& g) { g.in<double>(1); }), ContainsSubstring("input 1 of 1"));
}

TEST_CASE_METHOD(TapeFixture, "an observer sees every call with its tensors, and the same nodes again in backward") {
  struct Seen {
    bool backward;
    std::size_t node, inputs;
    bool operator==(const Seen&) const = default;
  };
  std::vector<Seen> seen;
  tape.observe([&](const Tape::Observed& op) {
    REQUIRE(op.name == std::string("weighted"));
    REQUIRE(op.outputs.size() == (op.backward ? 0 : 1));
    seen.push_back({op.backward, op.node, op.inputs.size()});
  });
  const Tensor y = on_tape([&] {
    weighted({{1, zeros({2}, DType::float64)}});  // leaves no node
    const Tensor u = weighted({{2, a}, {1, b}});
    return weighted({{3, u}});
  });
  backward(y);
  REQUIRE(seen == std::vector<Seen>{{false, 0, 1}, {false, 0, 2}, {false, 1, 1}, {true, 1, 0}, {true, 0, 0}});
}

TEST_CASE_METHOD(TapeFixture, "Observing sees the ops of its scope, and nothing records them") {
  std::vector<std::size_t> seen, inner;  // the number of inputs of each op
  Tensor y;
  {
    const Recording on(tape);
    {
      const Observing observing([&](const Tape::Observed& op) {
        REQUIRE(op.name == std::string("weighted"));
        REQUIRE_FALSE(op.backward);
        REQUIRE(op.outputs.size() == 1);
        seen.push_back(op.inputs.size());
      });
      REQUIRE(Tape::current() == nullptr);
      y = weighted({{2, a}, {1, b}});
      {
        const Observing other([&](const Tape::Observed& op) { inner.push_back(op.inputs.size()); });
        weighted({{1, a}, {1, b}, {1, y}});
      }
      Tape further;
      {
        const Recording recorded(further);
        weighted({{1, a}});
      }
      REQUIRE(further.size() == 1);
      weighted({{3, y}});
    }
    REQUIRE(tape.size() == 0);
    weighted({{1, a}});
    REQUIRE(tape.size() == 1);
  }
  REQUIRE_FALSE(y.requires_grad());
  REQUIRE(seen == std::vector<std::size_t>{2, 1});
  REQUIRE(inner == std::vector<std::size_t>{3});
}

TEST_CASE_METHOD(TapeFixture, "activations return to the pool as the tape unwinds") {
  constexpr std::int64_t kElements = 1 << 16, kBytes = kElements * 8;
  ParameterStore large(DType::float64);
  Parameter& x = large.add("x", {kElements}, init::constant(1));
  large.seal();
  std::vector<std::int64_t> in_use;
  tape.observe([&](const Tape::Observed& op) {
    if (op.backward) in_use.push_back(storage_pool::statistics().bytes_in_use);
  });
  const Tensor y = on_tape([&] {
    Tensor u = x;
    for (int i = 0; i < 10; ++i) u = weighted({{1, u}});
    return u;
  });
  backward(y);
  REQUIRE(in_use.size() == 10);
  REQUIRE(in_use[0] - in_use[9] >= 7 * kBytes);
}

TEST_CASE("a chain of a million nodes runs on a small stack, and is destroyed on it without having run") {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread;
  static double gradient = 0;
  const auto body = [](void*) -> void* {
    ParameterStore store(DType::float64);
    Parameter& a = store.add("a", {1}, init::constant(1));
    store.seal();
    {
      Tape unused;
      long_chain(unused, a);
      if (unused.size() != 1'000'000) return nullptr;
    }
    Tape tape;
    tape.backward(long_chain(tape, a), 3.0);
    gradient = a.gradient().item();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, body, nullptr) == 0);
  pthread_join(thread, nullptr);
  REQUIRE(gradient == 3.0);
}

TEST_CASE_METHOD(TapeFixture, "random numbers are a function of the recording's context and the number of the call") {
  const auto first = [&](RandomContext context, int skipped) {
    const Recording on(tape, context);
    for (int i = 0; i < skipped; ++i) tape.next_stream(RandomPurpose::dropout);
    return tape.next_stream(RandomPurpose::dropout).bits64(0);
  };
  const std::uint64_t bits = first({1, 2, 3}, 0);
  REQUIRE(first({1, 2, 3}, 0) == bits);
  REQUIRE(first({1, 2, 3}, 1) != bits);
  REQUIRE(first({1, 2, 4}, 0) != bits);
  REQUIRE(first({1, 3, 3}, 0) != bits);
  REQUIRE(first({2, 2, 3}, 0) != bits);
}

TEST_CASE_METHOD(TapeFixture, "inspection names the first tensor that is not finite") {
  tape.inspect(true);
  backward(on_tape([&] { return weighted({{1, weighted({{std::nan(""), a}})}}); }));
  REQUIRE_THAT(tape.first_non_finite(), ContainsSubstring("output of weighted (node 0"));
  tape.inspect(true);
  store.clear_gradients();
  backward(on_tape([&] {
    const Tensor u = weighted({{1, b}});
    return record("spoils", Tensor(u.detach()), {u}, [](Grads& g) {
      const Sink<double> dx = g.in<double>(0);
      dx.put(0, 1);
      dx.put(1, std::nan(""));
    });
  }));
  REQUIRE_THAT(tape.first_non_finite(), ContainsSubstring("input gradient of spoils"));
}

TEST_CASE("values of a frozen parameter must not change before backward, because gradients of others depend on them") {
  ParameterStore trained, other;
  Parameter& a = trained.add("a", {1, 2}, init::normal(1));
  Parameter& frozen = other.add("b", {2, 2}, init::normal(1), ParamGroup::frozen);
  trained.seal(1);
  other.seal(2);
  enum class Way { directly, recomputed, watched };
  const auto loss_of = [&](Tape& tape, Way way) {
    const Recording on(tape);
    const Tensor weight = way == Way::watched ? tape.watch(frozen) : frozen.value();
    const auto product = [weight](const Tensor& x) { return linear(x, weight); };
    return sum(way == Way::recomputed ? recompute(scale(a, 1), product) : product(a));
  };
  for (const Way way : {Way::directly, Way::recomputed, Way::watched}) {
    Tape tape;
    const Tensor loss = loss_of(tape, way);
    other.mark_changed();
    REQUIRE_THROWS_WITH(tape.backward(loss), ContainsSubstring("parameter b was updated after it was recorded"));
    tape.backward(loss_of(tape, way));
    REQUIRE(a.gradient_written());
    trained.clear_gradients();
  }
}

TEST_CASE("an op that would be rounded otherwise than the backward pass of its recording is refused") {
  ParameterStore store;
  Parameter& w = store.add("w", {2, 2}, init::normal(1));
  store.seal(1);
  Tape tape;
  const Recording on(tape);
  const Tensor x = full({1, 2}, DType::float32, 1);
  linear(x, w);
  const ProductPrecision rounding(Precision::bfloat16);
  REQUIRE_THROWS_WITH(linear(x, w), ContainsSubstring("linear: the Recording was begun with products in float32; got "
                                                      "bfloat16"));
}

TEST_CASE("a recording within another one rounds as that one does, also before anything is recorded") {
  ParameterStore store;
  Parameter& w = store.add("w", {2, 2}, init::normal(1));
  store.seal(1);
  Tape tape;
  {
    const Recording outer(tape);
    {
      const ProductPrecision rounding(Precision::bfloat16);
      REQUIRE_THROWS_WITH(Recording(tape), ContainsSubstring("begun with products in float32; got bfloat16"));
    }
    const Recording inner(tape);
    REQUIRE_NOTHROW(linear(full({1, 2}, DType::float32, 1), w));
  }
  tape.clear();
  const ProductPrecision rounding(Precision::bfloat16);
  REQUIRE_NOTHROW(Recording(tape));
}
