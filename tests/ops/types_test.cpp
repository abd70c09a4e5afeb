// Element types: convert and its gradient, and the messages for mixed types.
#include <functional>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "tests/catch.h"
#include "tests/ops/op_case.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("the gradient of convert has the type of its input, in both directions") {
  for (const auto& types : {std::pair{DType::float32, DType::float64},
                            {DType::float64, DType::float32},
                            {DType::float32, DType::float32},
                            {DType::float64, DType::float64}}) {
    const DType from = types.first, to = types.second;
    INFO(to_string(from) << " to " << to_string(to));
    ParameterStore store(from);
    Parameter& x = store.add("x", {3}, init::values(tensor<double>({0.1, -2, 3e-5}, {3})));
    store.seal();
    Tape tape;
    for (int pass = 1; pass <= 2; ++pass) {  // written, then added
      const Tensor y = [&] {
        const Recording on(tape);
        const Tensor converted = convert(x, to);
        return sum(mul(converted, converted));
      }();
      REQUIRE(y.dtype() == to);
      tape.backward(y);
      REQUIRE(x.gradient().dtype() == from);
      for (std::int64_t i = 0; i < 3; ++i) {
        REQUIRE(x.gradient().at(i) == Approx(2 * pass * x.value().at(i)).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("convert rounds to the nearest float32, and copies even if the type is the same") {
  const Tensor x = tensor<double>({0.1, 1 + 1e-8, 1e300, 16777217}, {4});
  const Tensor y = convert(x, DType::float32);
  for (std::int64_t i = 0; i < 4; ++i) REQUIRE(y.at(i) == static_cast<double>(static_cast<float>(x.at(i))));
  const Tensor same = convert(x, DType::float64);
  REQUIRE(same_bits(same, x));
  REQUIRE(same.data<double>() != x.data<double>());
  REQUIRE_THROWS_WITH(convert(x, DType::int32), ContainsSubstring("float32 or float64; got int32"));
  REQUIRE_THROWS_WITH(convert(zeros({2}, DType::int32), DType::float32), ContainsSubstring("int32"));
  REQUIRE_THROWS_WITH(convert(Tensor(), DType::float32), ContainsSubstring("empty tensor"));
}

TEST_CASE("if the types of its inputs differ, linear names all of them") {
  const Tensor x = zeros({2, 3}, DType::float32), weight = zeros({4, 3}, DType::float32);
  const Tensor bias = zeros({4}, DType::float64);
  REQUIRE_THROWS_WITH(linear(x, weight, bias),
                      ContainsSubstring("linear: x, weight and bias must have the same type; got "
                                        "float32, float32 and float64"));
  REQUIRE_THROWS_WITH(linear_gelu(x, convert(weight, DType::float64)),
                      ContainsSubstring("got float32, float64 and no bias"));
}

TEST_CASE("an op names two types that differ in the order of its inputs, whichever input differs from the first") {
  const Tensor x = zeros({2, 3, 4}, DType::float32), matrix = zeros({4, 4}, DType::float32),
               row = zeros({4}, DType::float32);
  const auto other = [](const Tensor& t) { return convert(t, DType::float64); };
  const auto refused = [&](const char* op, const std::function<Tensor()>& call) {
    INFO(op);
    REQUIRE_THROWS_WITH(call(),
                        ContainsSubstring(std::string(op) + ": ") && ContainsSubstring("got float32 and float64"));
  };
  refused("add", [&] { return add(x, other(x)); });
  refused("where", [&] { return where(zeros({2, 3, 4}, DType::int32), x, other(x)); });
  refused("concat", [&] { return concat({x, other(x)}, 0); });
  refused("stack", [&] { return stack({x, other(x)}); });
  refused("mse", [&] { return mse(x, other(x)); });
  refused("layer_norm", [&] { return layer_norm(x, other(row)); });
  refused("layer_norm", [&] { return layer_norm(x, row, other(row)); });
  refused("rms_norm_heads", [&] { return rms_norm_heads(x, other(row), 1); });
  refused("causal_conv", [&] { return causal_conv(x, other(matrix)); });
  refused("causal_conv", [&] { return causal_conv(x, matrix, other(x)); });
  refused("rotary", [&] { return rotary(x, other(zeros({3, 4}, DType::float32)), 1); });
  refused("attention", [&] { return attention(x, other(zeros({2, 3, 8}, DType::float32)), {.n_head = 1}); });
  refused("linear_attention", [&] { return linear_attention(x, other(x), x, {.n_head = 1}); });
  refused("linear_attention", [&] { return linear_attention(x, x, other(x), {.n_head = 1}); });
  refused("expected_cross_entropy", [&] { return expected_cross_entropy(x, other(x)); });
  refused("linear_cross_entropy", [&] { return linear_cross_entropy(x, other(matrix), zeros({2, 3}, DType::int32)); });
  refused("gelu_feed_forward", [&] { return gelu_feed_forward(x, other(matrix), row, matrix, row); });
  refused("gelu_feed_forward", [&] { return gelu_feed_forward(x, matrix, other(row), matrix, row); });
  refused("gelu_feed_forward", [&] { return gelu_feed_forward(x, matrix, row, other(matrix), row); });
  refused("gelu_feed_forward", [&] { return gelu_feed_forward(x, matrix, row, matrix, other(row)); });
}
