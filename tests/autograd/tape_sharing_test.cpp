// Gradients that share a block because an op passed the gradient of its output on without copying it. Whoever adds to
// such a block later must copy it first, or the gradients of the other holders are corrupted.
#include <functional>

#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "tests/catch.h"

using namespace maki;

namespace {

constexpr std::int64_t kSharedElements = 3;

Tensor sum_of(const Tensor& a, const Tensor& b, double weight_of_b = 1) {
  Tensor y = empty_like(a);
  for (std::int64_t i = 0; i < kSharedElements; ++i) y.data<double>()[i] = a.at(i) + weight_of_b * b.at(i);
  return y;
}

// y = a + b; both receive the gradient of y itself.
Tensor pass_both(const Tensor& a, const Tensor& b) {
  return record("pass_both", sum_of(a, b), {a, b}, [](Grads& g) {
    g.pass(0);
    g.pass(1);
  });
}

// y = x, and the gradient of x is passed on.
Tensor pass_one(const Tensor& x) {
  return record("pass_one", Tensor(x.detach()), {x}, [](Grads& g) { g.pass(0); });
}

// y = factor · x, and the gradient of x is written or added to by the op.
Tensor scaled(const Tensor& x, double factor) {
  return record("scaled", sum_of(zeros({kSharedElements}, DType::float64), x, factor), {x}, [factor](Grads& g) {
    const Sink<double> dx = g.in<double>(0);
    for (std::int64_t i = 0; i < kSharedElements; ++i) dx.put(i, factor * g.out<double>()[i]);
  });
}

struct SharingFixture {
  ParameterStore store{DType::float64};
  Parameter& a = store.add("a", {kSharedElements}, init::constant(1));
  Parameter& b = store.add("b", {kSharedElements}, init::constant(2));
  Tape tape;
  SharingFixture() { store.seal(); }

  // Records u = a and v = b, then `on_one` of one of them, then u + v, which passes its gradient on to both. Backward
  // visits u + v first, so u and v share one block when the gradient of `on_one` is added to one of them.
  void share_then_add(bool first, const std::function<Tensor(const Tensor&)>& on_one) {
    store.clear_gradients();
    const Tensor y = [&] {
      const Recording on(tape);
      const Tensor u = scaled(a, 1), v = scaled(b, 1);
      const Tensor other = on_one(first ? u : v);
      return sum(pass_both(u, v), other);
    }();
    const Tensor cotangent = tensor<double>({1, 10, 100}, {kSharedElements});
    tape.backward(y, cotangent);
    REQUIRE(cotangent.at(0) == 1);
    REQUIRE(cotangent.at(2) == 100);
  }
  // y = s + other; each input receives a gradient block of its own.
  static Tensor sum(const Tensor& s, const Tensor& other) {
    return record("sum", sum_of(s, other), {s, other}, [](Grads& g) {
      for (int i = 0; i < 2; ++i) {
        const Sink<double> dx = g.in<double>(i);
        for (std::int64_t k = 0; k < kSharedElements; ++k) dx.put(k, g.out<double>()[k]);
      }
    });
  }
  void require_gradients(double of_a, double of_b) const {
    for (std::int64_t i = 0, power = 1; i < kSharedElements; ++i, power *= 10) {
      REQUIRE(a.gradient().at(i) == of_a * static_cast<double>(power));
      REQUIRE(b.gradient().at(i) == of_b * static_cast<double>(power));
    }
  }
};

}  // namespace

TEST_CASE_METHOD(SharingFixture, "an op that adds to a shared gradient does not change it for the other holder") {
  share_then_add(true, [](const Tensor& x) { return scaled(x, 7); });
  require_gradients(8, 1);
  share_then_add(false, [](const Tensor& x) { return scaled(x, 7); });
  require_gradients(1, 8);
}

TEST_CASE_METHOD(SharingFixture,
                 "passing a gradient on to an input that shares one does not change it for the other holder") {
  share_then_add(true, [](const Tensor& x) { return pass_one(x); });
  require_gradients(2, 1);
  share_then_add(false, [](const Tensor& x) { return pass_one(x); });
  require_gradients(1, 2);
  // Both inputs are the same tensor: the second gradient is added to a copy.
  share_then_add(true, [](const Tensor& x) { return pass_both(x, x); });
  require_gradients(3, 1);
}

TEST_CASE_METHOD(SharingFixture, "the caller's cotangent is unchanged when it is passed on and added to") {
  const Tensor cotangent = tensor<double>({1, 10, 100}, {kSharedElements});
  const Tensor y = [&] {
    const Recording on(tape);
    const Tensor u = scaled(a, 1);
    const Tensor early = scaled(u, 5);
    return pass_both(u, early);
  }();
  tape.backward(y, cotangent);
  require_gradients(6, 0);
  REQUIRE(cotangent.at(0) == 1);
  REQUIRE(cotangent.at(1) == 10);
  REQUIRE(cotangent.at(2) == 100);
}
