// The operators + − · / on tensors and numbers: each is the op that it stands for, bit for bit, gradients included.
#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "tests/catch.h"
#include "tests/ops/op_case.h"

using namespace maki;
using namespace maki::tests;

namespace {

using Call = std::function<Tensor(const Tensor&, const Tensor&)>;

// Both calls on the same inputs; the gradients of both inputs, too.
void require_equal(const char* name, const Call& operators, const Call& ops) {
  Draw draw(5);
  const Tensor a = draw.away_from_zero({3, 5}, 0.5, 2), b = draw.away_from_zero({5}, 0.5, 2);
  for (const DType dtype : {DType::float32, DType::float64}) {
    INFO(name << " in " << to_string(dtype));
    const auto evaluated = [&](const Call& call) {
      BoundCase bound({{a, b}, [&](const std::vector<Tensor>& x) { return call(x[0], x[1]); }}, dtype);
      return evaluate(bound);
    };
    const Evaluation found = evaluated(operators), expected = evaluated(ops);
    REQUIRE(same_bits(found.output, expected.output));
    for (std::size_t i = 0; i < 2; ++i) REQUIRE(same_bits(found.gradients[i], expected.gradients[i]));
  }
}

Tensor number(const Tensor& like, double value) { return full({}, like.dtype(), value); }

}  // namespace

TEST_CASE("operators between tensors are add, sub, mul, div and neg") {
  using T = const Tensor&;
  require_equal(
      "a + b", [](T a, T b) { return a + b; }, add);
  require_equal(
      "a - b", [](T a, T b) { return a - b; }, sub);
  require_equal(
      "a * b", [](T a, T b) { return a * b; }, mul);
  require_equal(
      "a / b", [](T a, T b) { return a / b; }, maki::div);
  require_equal(
      "-a * b", [](T a, T b) { return -a * b; }, [](T a, T b) { return mul(neg(a), b); });
}

TEST_CASE("operators between a tensor and a number broadcast the number in the type of the tensor") {
  using T = const Tensor&;
  require_equal(
      "number on the right", [](T a, T b) { return (a + 0.1) * (b - 0.3) * 7 / 3; },
      [](T a, T b) { return maki::div(scale(mul(add(a, number(a, 0.1)), sub(b, number(b, 0.3))), 7), number(a, 3)); });
  require_equal(
      "number on the left", [](T a, T b) { return 0.1 + a + (0.3 - b) + 7 * a + 3 / b; },
      [](T a, T b) {
        const Tensor sums = add(add(number(a, 0.1), a), sub(number(b, 0.3), b));
        return add(add(sums, scale(a, 7)), maki::div(number(b, 3), b));
      });
}

TEST_CASE("operators accept parameters, and reject integers and empty tensors with the message of the op") {
  ParameterStore store(DType::float64);
  const Parameter& w = store.add("w", {2}, init::constant(3));
  store.seal();
  REQUIRE((w * w + w - 2 * w / 4).at(1) == 9 + 3 - 1.5);
  REQUIRE((-w).at(0) == -3);
  REQUIRE_THROWS_WITH(tensor<std::int32_t>({1}, {1}) + 1, ContainsSubstring("add: ") && ContainsSubstring("int32"));
  REQUIRE_THROWS_WITH(1 / Tensor(), ContainsSubstring("div: an input is an empty tensor"));
  REQUIRE_THROWS_WITH(zeros({2}, DType::float32) * w, ContainsSubstring("float32 and float64"));
}
