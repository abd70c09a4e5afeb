// The 8-bit copy of a store's matrices: which ops read it, and that they then compute with the rounded numbers.
#include <limits>

#include "autograd/core/check.h"
#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "tests/catch.h"
#include "tests/ops/op_case.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr std::int64_t kInput = 70, kHidden = 90;

struct TwoMatrices {
  explicit TwoMatrices(bool freezes = false) {
    up = &store.add("up", {kHidden, kInput}, init::normal(1));
    down = &store.add("down", {kInput, kHidden}, init::normal(1));
    bias = &store.add("bias", {kHidden}, init::normal(1));
    table = &store.add("table", {kHidden, kInput}, init::normal(1));
    table->set_multiplied(false);
    if (freezes) store.freeze(*up);
    store.seal(1);
  }
  ParameterStore store{DType::float32};
  Parameter *up, *down, *bias, *table;
};

// The numbers that the 8-bit copy of a parameter stands for.
Tensor rounded_value(const Parameter& parameter) {
  const Int8Matrix& m = *parameter.int8();
  Tensor value = empty(parameter.shape(), DType::float32);
  for (std::int64_t row = 0; row < m.out; ++row) {
    for (std::int64_t step = 0; step < m.in; ++step) {
      value.data<float>()[row * m.in + step] = m.at(row, step);
    }
  }
  return value;
}

using WeightsOp = Tensor (*)(const Tensor& x, const Tensor& up, const Tensor& down, const Tensor& bias);
const std::vector<std::pair<const char*, WeightsOp>> kOpsOfMatrices = {
    {"linear", [](const auto& x, const auto& up, const auto&, const auto& bias) { return linear(x, up, bias); }},
    {"linear_gelu",
     [](const auto& x, const auto& up, const auto&, const auto& bias) { return linear_gelu(x, up, bias, Gelu::tanh); }},
    {"gelu_feed_forward", [](const auto& x, const auto& up, const auto& down,
                             const auto& bias) { return gelu_feed_forward(x, up, bias, down, {}); }},
    {"linear_cross_entropy",
     [](const auto& x, const auto& up, const auto&, const auto&) {
       return linear_cross_entropy(x, up, full({x.shape()[0]}, DType::int32, 5));
     }},
};

Tensor computed(WeightsOp op, const Tensor& x, const TwoMatrices& m) { return op(x, *m.up, *m.down, *m.bias); }

}  // namespace

TEST_CASE("ops that are not recorded compute with the 8-bit copy, whatever the precision") {
  for (const auto& [name, op] : kOpsOfMatrices) {
    INFO(name);
    for (const std::int64_t rows : {1, 50}) {
      TwoMatrices m(/*freezes=*/rows == 1);  // a frozen parameter is read as well
      Draw draw(2);
      const Tensor x = convert(draw.normals({rows, kInput}), DType::float32), exact = computed(op, x, m);
      m.store.keep_int8_values();
      const Tensor up = rounded_value(*m.up), down = rounded_value(*m.down), expected = op(x, up, down, *m.bias);
      REQUIRE_FALSE(same_bits(expected, exact));
      REQUIRE(same_bits(computed(op, x, m), expected));
      {
        const AsRecorded as_recorded;
        const ProductPrecision rounding(Precision::bfloat16);
        REQUIRE(same_bits(computed(op, x, m), expected));
      }
      m.store.mark_changed();
      REQUIRE(same_bits(computed(op, x, m), exact));
    }
  }
}

TEST_CASE("recorded ops and their gradients ignore the 8-bit copy") {
  for (const auto& [name, op] : kOpsOfMatrices) {
    INFO(name);
    std::vector<Tensor> results[2];
    for (const bool rounds : {false, true}) {
      TwoMatrices m;
      if (rounds) m.store.keep_int8_values();
      Draw draw(3);
      const Tensor x = convert(draw.normals({6, kInput}), DType::float32);
      Tape tape;
      Tensor y;
      {
        const Recording on(tape);
        y = computed(op, x, m);
      }
      tape.backward(y, full(y.shape(), DType::float32, 0.5));
      results[rounds ? 1 : 0] = {y.detach(), m.store.gradients().clone()};
    }
    for (std::size_t i = 0; i < 2; ++i) REQUIRE(same_bits(results[0][i], results[1][i]));
  }
}

TEST_CASE("the 8-bit copy has the matrices by which tokens are multiplied, and only those of finite float32 numbers") {
  TwoMatrices m;
  REQUIRE_FALSE(m.store.has_int8_values());
  m.store.keep_int8_values();
  REQUIRE(m.store.has_int8_values());
  REQUIRE(m.up->int8() != nullptr);
  REQUIRE(m.down->int8() != nullptr);
  REQUIRE(m.bias->int8() == nullptr);
  REQUIRE(m.table->int8() == nullptr);
  // Blocks of 16 rows by 64 steps: 6 by 2 and 5 by 2.
  REQUIRE(m.store.int8_values_bytes() == (12 + 10) * std::int64_t{sizeof(Int8Block)});
  // A weight in another shape is read as it is.
  const Tensor x = full({2, kHidden}, DType::float32, 1), other = reshape(m.up->value(), {kInput, kHidden});
  REQUIRE(same_bits(linear(x, other), linear(x, other.detach())));

  m.store.values().data<float>()[m.down->offset() + 3] = std::numeric_limits<float>::quiet_NaN();
  m.store.mark_changed();
  REQUIRE_THROWS_WITH(m.store.keep_int8_values(), ContainsSubstring("parameter down has others"));
  REQUIRE_FALSE(m.store.has_int8_values());

  ParameterStore doubles(DType::float64), unsealed(DType::float32);
  doubles.add("w", {4, 4}, init::normal(1));
  doubles.seal(1);
  REQUIRE_THROWS_WITH(doubles.keep_int8_values(), ContainsSubstring("only float32 values"));
  REQUIRE_THROWS_WITH(unsealed.keep_int8_values(), ContainsSubstring("not sealed"));
}

TEST_CASE("a feed-forward network of which one matrix has an 8-bit copy computes what its two layers compute") {
  for (const bool first : {false, true}) {
    TwoMatrices m;
    (first ? m.down : m.up)->set_multiplied(false);
    m.store.keep_int8_values();
    Draw draw(4);
    const Tensor x = convert(draw.normals({6, kInput}), DType::float32);
    const AsRecorded as_recorded;
    for (const Precision precision : kPrecisions) {
      const ProductPrecision rounding(precision);
      REQUIRE(same_bits(gelu_feed_forward(x, *m.up, *m.bias, *m.down, {}),
                        linear(linear_gelu(x, *m.up, *m.bias), *m.down)));
    }
  }
}
