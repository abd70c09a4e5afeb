// An exception in a recording or in backward leaves nothing behind: no gradient, no memory, no broken tape.
#include <functional>
#include <stdexcept>

#include "autograd/core/check.h"
#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "tests/catch.h"

using namespace maki;

namespace {

struct Failure : std::runtime_error {
  Failure() : std::runtime_error("made to fail") {}
};

// The identity. `before` runs at the beginning of its backward.
Tensor watched(const Tensor& x, std::function<void()> before) {
  return record("watched", Tensor(x.detach()), {x}, [before = std::move(before)](Grads& g) {
    before();
    g.pass(0);
  });
}

Tensor failing(const Tensor& x) {
  return watched(x, [] { throw Failure(); });
}

struct Fixture {
  ParameterStore store{DType::float64};
  Parameter& a = store.add("a", {2}, init::constant(1));
  Parameter& b = store.add("b", {2}, init::constant(2));
  Tape tape;
  Fixture() { store.seal(); }

  // sum(3a + 5b). Backward reaches b first.
  Tensor loss(const std::function<Tensor(const Tensor&)>& around_a) {
    const Recording on(tape);
    const Tensor from_a = around_a(scale(a, 3));
    return sum(add(from_a, scale(b, 5)));
  }
  Tensor loss() {
    return loss([](const Tensor& x) { return x; });
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "after an error inside backward the gradient of the next step is unaffected") {
  REQUIRE_THROWS_AS(tape.backward(loss(failing)), Failure);
  REQUIRE(tape.size() == 0);
  REQUIRE(b.gradient().at(0) == 0);
  tape.backward(loss());
  REQUIRE(a.gradient().at(0) == 3);
  REQUIRE(b.gradient().at(0) == 5);
}

TEST_CASE_METHOD(Fixture, "an error inside backward also clears what earlier passes of the step had accumulated") {
  Parameter* elsewhere = nullptr;
  ParameterStore other(DType::float64);
  elsewhere = &other.add("elsewhere", {2}, init::constant(1));
  other.seal();
  {
    const Recording on(tape);
    tape.backward(sum(add(a, elsewhere->value())));
  }
  REQUIRE_THROWS_AS(tape.backward(loss(failing)), Failure);
  for (std::int64_t i = 0; i < 16; ++i) REQUIRE(store.gradients().at(i) == 0);
  REQUIRE(elsewhere->gradient().at(1) == 1);  // a store that took no part in the failed pass
}

TEST_CASE_METHOD(Fixture, "an error before backward starts leaves gradients unchanged and clears the tape") {
  tape.backward(loss());
  const Tensor two = [&] {
    const Recording on(tape);
    return scale(a, 2);
  }();
  REQUIRE_THROWS_WITH(tape.backward(two), ContainsSubstring("one element"));
  REQUIRE(tape.size() == 0);
  REQUIRE(a.gradient().at(0) == 3);
}

TEST_CASE_METHOD(Fixture, "a recording that is ended by an exception releases its memory") {
  constexpr std::int64_t kElements = 1 << 18;
  ParameterStore large(DType::float64);
  Parameter& x = large.add("x", {kElements}, init::constant(1));
  large.seal();
  const std::int64_t before = storage_pool::statistics().bytes_in_use;
  Tensor kept;
  const auto recording = [&] {
    const Recording on(tape);
    Tensor y = x;
    for (int i = 0; i < 5; ++i) y = exp(y);
    kept = sum(y);
    return matmul(y, y);  // throws: rank 1
  };
  REQUIRE_THROWS_AS(recording(), Error);
  REQUIRE(tape.size() == 0);
  REQUIRE(storage_pool::statistics().bytes_in_use - before < kElements);
  REQUIRE_THROWS_WITH(tape.backward(kept), ContainsSubstring("cleared"));
}

TEST_CASE_METHOD(Fixture, "a tape that ends before it runs backward releases what its ops have saved") {
  const std::int64_t before = storage_pool::statistics().bytes_in_use;
  {
    Tape ended;
    const Recording on(ended);
    exp(exp(scale(a, 2)));
    REQUIRE(storage_pool::statistics().bytes_in_use > before);
  }
  REQUIRE(storage_pool::statistics().bytes_in_use == before);
}

TEST_CASE_METHOD(Fixture, "an exception that is caught inside a recording does not end it") {
  const Tensor y = [&] {
    const Recording on(tape);
    const Tensor u = scale(a, 7);
    try {
      const Recording inner(tape);
      CHECK_THROWS_AS(matmul(u, u), Error);
    } catch (const Error&) {
    }
    return sum(u);
  }();
  tape.backward(y);
  REQUIRE(a.gradient().at(0) == 7);
}

TEST_CASE_METHOD(Fixture, "a tape refuses to record, to be cleared and to run again while it runs backward") {
  const auto error_of = [&](const std::function<void()>& action) {
    std::string message;
    const Recording on(tape);  // still open while backward runs
    const Tensor y = sum(watched(scale(a, 2), action));
    try {
      tape.backward(y);
    } catch (const Error& error) {
      message = error.what();
    }
    return message;
  };
  const auto many_ops = [&] {
    for (int i = 0; i < 100; ++i) scale(a, 2);  // enough that the vector of nodes is reallocated
  };
  REQUIRE_THAT(error_of(many_ops), ContainsSubstring("scale: called while the tape that records it runs backward"));
  REQUIRE_THAT(error_of([&] { const Recording again(tape); }), ContainsSubstring("running backward"));
  REQUIRE_THAT(error_of([&] { tape.clear(); }), ContainsSubstring("cannot be cleared"));
  REQUIRE_THAT(error_of([&] { tape.backward(a); }), ContainsSubstring("running backward"));
  tape.backward(loss());
  REQUIRE(a.gradient().at(0) == 3);
}

TEST_CASE("the error for a loss of frozen parameters alone asks for one that is not frozen") {
  ParameterStore store(DType::float64);
  Parameter& fixed = store.add("fixed", {2}, init::constant(1), ParamGroup::frozen);
  store.seal();
  Tape tape;
  const Tensor y = [&] {
    const Recording on(tape);
    return sum(fixed);
  }();
  REQUIRE_THROWS_WITH(tape.backward(y), ContainsSubstring("at least one parameter that is not frozen"));
}

namespace {

std::uint64_t draw(Tape& tape) { return tape.next_stream(RandomPurpose::dropout).bits64(0); }

std::uint64_t draw_in_recording(Tape& tape) {
  const Recording on(tape);
  return draw(tape);
}

}  // namespace

TEST_CASE("recordings without a context draw different numbers, the same on every tape") {
  Tape tape, other;
  std::vector<std::uint64_t> drawn;
  for (int step = 0; step < 4; ++step) {
    drawn.push_back(draw_in_recording(tape));
    REQUIRE(draw_in_recording(other) == drawn.back());
    other.clear();
    for (int before = 0; before < step; ++before) REQUIRE(drawn[static_cast<std::size_t>(before)] != drawn.back());
  }
}

TEST_CASE_METHOD(Fixture, "two recordings on one tape draw different numbers, whatever their context") {
  const RandomContext context{.seed = 5, .step = 1};
  const auto dropped = [&] {
    const Recording on(tape, context);
    const Tensor y = dropout(a, 0.5);
    return draw(tape);
  };
  const std::uint64_t first = dropped(), second = dropped();
  REQUIRE(first != second);
  tape.clear();
  REQUIRE(dropped() == first);  // on an empty tape the context decides
}

TEST_CASE("a nested recording does not change the random numbers of the outer one") {
  const RandomContext outer{.seed = 1}, inner{.seed = 2};
  Tape tape, plain;
  std::uint64_t expected = 0;
  {
    const Recording on(plain, outer);
    draw(plain);
    draw(plain);
    expected = draw(plain);
  }
  const Recording on(tape, outer);
  draw(tape);
  {
    const Recording within(tape, inner);
    draw(tape);
  }
  REQUIRE(draw(tape) == expected);
}
