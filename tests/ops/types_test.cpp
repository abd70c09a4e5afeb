// Element types: convert and its gradient, and the messages for mixed types; and those for shapes of products.
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
  refused("add_gated", [&] { return add_gated(x, other(x), x); });
  refused("add_gated", [&] { return add_gated(x, x, other(x)); });
  refused("where", [&] { return where(zeros({2, 3, 4}, DType::int32), x, other(x)); });
  refused("concat", [&] { return concat({x, other(x)}, 0); });
  refused("stack", [&] { return stack({x, other(x)}); });
  refused("mse", [&] { return mse(x, other(x)); });
  refused("layer_norm", [&] { return layer_norm(x, other(row)); });
  refused("layer_norm", [&] { return layer_norm(x, row, other(row)); });
  refused("rms_norm_heads", [&] { return rms_norm_heads(x, other(row), 1); });
  refused("short_conv", [&] { return short_conv(x, other(matrix)); });
  refused("short_conv", [&] { return short_conv(x, matrix, 0, other(x)); });
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

TEST_CASE(
    "an op that computes with floating-point numbers refuses integers, and a tensor without values, by its name") {
  const Tensor ids = zeros({2, 2}, DType::int32), cube = zeros({2, 2, 6}, DType::int32);
  const auto refused = [](const char* op, const Tensor& integers, const std::function<Tensor(const Tensor&)>& call) {
    INFO(op);
    REQUIRE_THROWS_WITH(call(integers),
                        std::string(op) + ": inputs must have the same type, float32 or float64; got int32 and int32");
    REQUIRE_THROWS_WITH(call(Tensor()),
                        std::string(op) + ": an input is an empty tensor; every input must hold values");
  };
  refused("neg", ids, [](const Tensor& x) { return neg(x); });
  refused("scale", ids, [](const Tensor& x) { return scale(x, 2); });
  refused("exp", ids, [](const Tensor& x) { return exp(x); });
  refused("pow", ids, [](const Tensor& x) { return pow(x, 2); });
  refused("clamp", ids, [](const Tensor& x) { return clamp(x, 0, 1); });
  refused("convert", ids, [](const Tensor& x) { return convert(x, DType::float32); });
  refused("dropout", ids, [](const Tensor& x) { return dropout(x, 0.5); });
  refused("swiglu", ids, [](const Tensor& x) { return swiglu(x); });
  refused("sum", ids, [](const Tensor& x) { return sum(x); });
  refused("mean", ids, [](const Tensor& x) { return mean(x); });
  refused("max", ids, [](const Tensor& x) { return maki::max(x); });
  refused("argmax", ids, [](const Tensor& x) { return argmax(x); });
  refused("transpose", ids, [](const Tensor& x) { return transpose(x); });
  refused("concat", ids, [](const Tensor& x) { return concat({x, x}, 0); });
  refused("slice", ids, [](const Tensor& x) { return slice(x, 0, 0, 1); });
  refused("gather", ids, [&](const Tensor& x) { return gather(x, 0, ids); });
  refused("softmax", ids, [](const Tensor& x) { return softmax(x); });
  refused("log_softmax", ids, [](const Tensor& x) { return log_softmax(x); });
  refused("layer_norm", ids, [](const Tensor& x) { return layer_norm(x); });
  refused("rms_norm", ids, [](const Tensor& x) { return rms_norm(x); });
  refused("embedding", ids, [&](const Tensor& x) { return embedding(x, ids); });
  refused("embedding_sum", ids, [&](const Tensor& x) { return embedding_sum(x, ids); });
  refused("cross_entropy", ids, [](const Tensor& x) { return cross_entropy(x, zeros({2}, DType::int32)); });
  refused("expected_cross_entropy", ids, [](const Tensor& x) { return expected_cross_entropy(x, x); });
  refused("linear_cross_entropy", ids,
          [](const Tensor& x) { return linear_cross_entropy(x, x, zeros({2}, DType::int32)); });
  refused("attention", cube, [](const Tensor& x) { return attention(x, {.n_head = 1}); });
  refused("short_conv", ids, [](const Tensor& x) { return short_conv(x, x); });
  refused("linear_attention", cube, [](const Tensor& x) { return linear_attention(x, x, x, {.n_head = 1}); });
}

TEST_CASE("products refuse shapes that do not fit, and name them") {
  const auto refused = [](const std::string& message, const std::function<Tensor()>& call) {
    REQUIRE_THROWS_WITH(call(), message);
  };
  const auto of = [](const Shape& shape) { return zeros(shape, DType::float32); };
  const std::string weight = "linear: weight must be [out, in] with in the last extent of x; got x ";
  refused(weight + "[2, 3], weight [3, 2]", [&] { return linear(of({2, 3}), of({3, 2})); });
  refused(weight + "[2, 3], weight [3]", [&] { return linear(of({2, 3}), of({3})); });
  refused(weight + "[], weight [1, 1]", [&] { return linear(of({}), of({1, 1})); });
  refused("linear: bias must be [4]; got [3]", [&] { return linear(of({2, 3}), of({4, 3}), of({3})); });
  refused("linear_gelu: bias must be [4]; got [1, 4]", [&] { return linear_gelu(of({2, 3}), of({4, 3}), of({1, 4})); });
  refused("matmul: both operands must have at least two axes; got [3] and [3, 2]", [&] {
    return matmul(of({3}), of({3, 2}));
  });
  refused("matmul: both operands must have at least two axes; got [2, 3] and [3]", [&] {
    return matmul(of({2, 3}), of({3}));
  });
  refused("matmul: leading axes must be equal, or one operand must have only two axes; got [2, 1, 3] and [1, 3, 2]",
          [&] {
            return matmul(of({2, 1, 3}), of({1, 3, 2}));
          });
  refused("matmul: inner extents must be equal; got [2, 3] and [2, 3]", [&] { return matmul(of({2, 3}), of({2, 3})); });
  refused("matmul: inner extents must be equal; got [3, 4] transposed and [3, 4] transposed", [&] {
    return matmul(of({3, 4}), of({3, 4}), true, true);
  });
  const std::string three = "linear_attention: q must be [B, T, H·F], k [B, S, H·F] and v [B, S, H·D]; got ";
  refused(three + "[1, 2, 4], [1, 3, 4] and [1, 2, 4]", [&] {
    return linear_attention(of({1, 2, 4}), of({1, 3, 4}), of({1, 2, 4}), {.n_head = 2});
  });
  refused(three + "[1, 2, 4], [1, 2, 6] and [1, 2, 4]", [&] {
    return linear_attention(of({1, 2, 4}), of({1, 2, 6}), of({1, 2, 4}), {.n_head = 2});
  });
  refused(three + "[1, 2, 4], [2, 2, 4] and [2, 2, 4]", [&] {
    return linear_attention(of({1, 2, 4}), of({2, 2, 4}), of({2, 2, 4}), {.n_head = 2});
  });
  refused(three + "[1, 2, 4], [1, 2, 4] and [2, 2, 4]", [&] {
    return linear_attention(of({1, 2, 4}), of({1, 2, 4}), of({2, 2, 4}), {.n_head = 2});
  });
  refused(three + "[1, 2, 4], [1, 2, 4] and [2, 4]", [&] {
    return linear_attention(of({1, 2, 4}), of({1, 2, 4}), of({2, 4}), {.n_head = 2});
  });
  refused("linear_attention: n_head must be at least 1 and divide the widths 6 and 4; got 4", [&] {
    return linear_attention(of({1, 2, 6}), of({1, 2, 6}), of({1, 2, 4}), {.n_head = 4});
  });
  refused("linear_attention: n_head must be at least 1 and divide the widths 4 and 4; got 0", [&] {
    return linear_attention(of({1, 2, 4}), of({1, 2, 4}), of({1, 2, 4}), {.n_head = 0});
  });
  for (const double floor : {-1.0, kInf, kNaN}) {
    refused(fmt::format("linear_attention: floor must be finite and not negative (0: none); got {}", floor), [&] {
      return linear_attention(of({1, 2, 4}), of({1, 2, 4}), of({1, 2, 4}), {.n_head = 2, .floor = floor});
    });
  }
  refused("linear_attention: chunk must not be negative (0: the default); got -1", [&] {
    return linear_attention(of({1, 2, 4}), of({1, 2, 4}), of({1, 2, 4}), {.n_head = 2, .chunk = -1});
  });
  refused("linear_attention: n_head must be at least 1 and divide the widths 4 and 6; got 4", [&] {
    return linear_attention(of({1, 2, 4}), of({1, 2, 4}), of({1, 2, 6}), {.n_head = 4});
  });
  refused("linear_attention: there must be as many queries as keys if it is causal; got 2 and 3", [&] {
    return linear_attention(of({1, 2, 4}), of({1, 3, 4}), of({1, 3, 4}), {.n_head = 2, .causal = true});
  });
}

TEST_CASE("linear attention refuses sums from which it cannot continue, and to record what has no gradient") {
  const Tensor x = zeros({1, 3, 8}, DType::float32);
  const Shape products{1, 2, 4, 4}, keys{1, 2, 4};
  const auto said = [&](const Shape& of_products, const Shape& of_keys, bool causal = true,
                        DType dtype = DType::float32) {
    return refusal([&] {
      LinearAttentionSums sums{zeros(of_products, dtype), zeros(of_keys, dtype)};
      linear_attention(x, x, x, {.n_head = 2, .causal = causal}, sums);
    });
  };
  REQUIRE(said(products, keys) == "nothing was rejected");
  REQUIRE(said({1, 2, 4, 3}, keys) ==
          "linear_attention: the sums must be [1, 2, 4, 4] and [1, 2, 4]; got [1, 2, 4, 3] and [1, 2, 4]");
  REQUIRE_THAT(said(products, {1, 2, 3}), ContainsSubstring("got [1, 2, 4, 4] and [1, 2, 3]"));
  REQUIRE_THAT(said(products, keys, true, DType::float64), ContainsSubstring("got float32 and float64"));
  REQUIRE(said(products, keys, false) == "linear_attention: sums need causal attention");
  Tape tape;
  const Recording on(tape);
  REQUIRE(said(products, keys) ==
          "linear_attention: with sums it has no gradient; end the Recording before generating");
}
