// ProductPrecision: which products round their operands to bfloat16, and that a backward pass rounds like its
// recording.
#include <bit>
#include <cmath>

#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "autograd/recompute.h"
#include "autograd/tape.h"
#include "tests/catch.h"
#include "tests/kernels/gemm_chain.h"
#include "tests/ops/op_table.h"
#include "tests/tensors.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr std::int64_t kRows = 6, kIn = 40, kOut = 9;

Tensor random(std::uint64_t seed, const Shape& shape, DType dtype = DType::float32) {
  return convert(Draw(seed).normals(shape), dtype);
}

// The values with the 16 upper bits of their pattern alone, which bfloat16 holds exactly.
Tensor short_numbers(std::uint64_t seed, const Shape& shape) {
  Tensor x = random(seed, shape);
  for (float& value : x.values<float>())
    value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xFFFF0000U);
  return x;
}

struct Layer {
  Layer() {
    weight = &store.add("weight", {kOut, kIn}, init::normal(1));
    store.seal(1);
  }
  ParameterStore store{DType::float32};
  Parameter* weight;
};

// y = x · weightᵀ and the gradient of the weight for the cotangent dy, recorded in `precision`.
std::pair<Tensor, Tensor> forward_and_gradient(Layer& layer, const Tensor& x, const Tensor& dy, Precision precision) {
  layer.store.clear_gradients();
  Tape tape;
  Tensor y;
  {
    const ProductPrecision rounding(precision);
    const Recording on(tape);
    y = linear(x, *layer.weight);
  }
  tape.backward(y, dy);  // the scope has ended: the tape knows its precision
  return {y.detach(), layer.weight->gradient().clone()};
}

double relative_difference(const Tensor& a, const Tensor& b) {
  double difference = 0, norm = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    difference += std::pow(a.at(i) - b.at(i), 2);
    norm += std::pow(b.at(i), 2);
  }
  return std::sqrt(difference / norm);
}

// The weights of two layers, whose store keeps a rounded copy of the weights.
struct RoundedLayers {
  RoundedLayers() {
    up = &store.add("up", {kOut, kIn}, init::normal(1));
    down = &store.add("down", {kIn, kOut}, init::normal(1));
    store.seal(1);
    store.keep_rounded_values();
  }
  // The copy becomes what `of` makes of the values.
  void fill_copy(float (*of)(float)) {
    const auto values = store.values().values<float>();
    for (std::int64_t i = 0; i < store.range(ParamGroup::decay).size(); ++i) {
      const float rounded = kernels::bf16_nearest(of(values[static_cast<std::size_t>(i)]));
      store.rounded_memory()[i] = {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded) >> 16)};
    }
    store.mark_rounded();
  }
  ParameterStore store{DType::float32};
  Parameter *up, *down;
};

using LayersOp = Tensor (*)(const Tensor& x, const RoundedLayers& layers);
const std::vector<std::pair<const char*, LayersOp>> kOpsWithWeights = {
    {"linear", [](const Tensor& x, const RoundedLayers& l) { return linear(x, *l.up); }},
    {"linear_gelu", [](const Tensor& x, const RoundedLayers& l) { return linear_gelu(x, *l.up, {}); }},
    {"gelu_feed_forward",
     [](const Tensor& x, const RoundedLayers& l) { return gelu_feed_forward(x, *l.up, {}, *l.down, {}); }},
    {"linear_cross_entropy",
     [](const Tensor& x, const RoundedLayers& l) {
       return linear_cross_entropy(x, *l.up, tensor<std::int32_t>({0, 1, 2, 3, 4, 8}, {kRows}));
     }},
};

// y, and the gradients of x and of all weights.
std::vector<Tensor> run_op(LayersOp op, RoundedLayers& layers, Precision precision) {
  layers.store.clear_gradients();
  Tape tape;
  Tensor x, y;
  {
    const ProductPrecision rounding(precision);
    const Recording on(tape);
    x = tape.watch(random(1, {kRows, kIn}));
    y = op(x, layers);
  }
  tape.backward(y, random(2, y.shape()));
  return {y.detach(), tape.gradient(x), layers.store.gradients().clone()};
}

}  // namespace

TEST_CASE("recorded products in bfloat16 differ from float32 by the rounding of their operands") {
  Layer layer;
  const Tensor x = random(1, {kRows, kIn}), dy = random(2, {kRows, kOut});
  const auto [y, gradient] = forward_and_gradient(layer, x, dy, Precision::float32);
  const auto [rounded, rounded_gradient] = forward_and_gradient(layer, x, dy, Precision::bfloat16);
  for (const double error : {relative_difference(rounded, y), relative_difference(rounded_gradient, gradient)}) {
    REQUIRE(error > 1e-4);
    REQUIRE(error < 8e-3);  // each operand is rounded by up to 2^-9
  }
}

TEST_CASE("numbers that bfloat16 holds are multiplied exactly as in float32") {
  Layer layer;
  const Tensor x = short_numbers(1, {kRows, kIn}), dy = short_numbers(2, {kRows, kOut});
  for (float& value : layer.store.values().values<float>()) value = std::round(value * 16) / 16;
  layer.store.mark_changed();
  const auto [y, gradient] = forward_and_gradient(layer, x, dy, Precision::float32);
  const auto [rounded, rounded_gradient] = forward_and_gradient(layer, x, dy, Precision::bfloat16);
  REQUIRE(relative_difference(rounded, y) < 1e-6);
  REQUIRE(relative_difference(rounded_gradient, gradient) < 1e-6);
}

TEST_CASE("only recorded products and attention of float32 are rounded, and scopes nest") {
  const Tensor x = random(1, {kRows, kIn}), weight = random(2, {kOut, kIn});
  const Tensor wide = random(1, {kRows, kIn}, DType::float64), wide_weight = random(2, {kOut, kIn}, DType::float64);
  const Tensor qkv = random(3, {2, 9, 48});
  const Attention heads{.n_head = 2, .causal = true};
  const Tensor plain_attention = attention(qkv, heads);
  const Tensor plain = linear(x, weight), plain_wide = linear(wide, wide_weight);
  REQUIRE(ProductPrecision::current() == Precision::float32);
  {
    const ProductPrecision rounding(Precision::bfloat16);
    REQUIRE(same_bits(linear(x, weight), plain));
    REQUIRE(same_bits(attention(qkv, heads), plain_attention));
    const AsRecorded recorded;
    REQUIRE_FALSE(same_bits(linear(x, weight), plain));
    REQUIRE_FALSE(same_bits(matmul(x, weight, false, true), plain));
    REQUIRE(same_bits(linear(x, weight), matmul(x, weight, false, true)));
    REQUIRE(same_bits(linear(wide, wide_weight), plain_wide));
    REQUIRE_FALSE(same_bits(attention(qkv, heads), plain_attention));
    const ProductPrecision inner(Precision::float32);
    REQUIRE(ProductPrecision::current() == Precision::float32);
    REQUIRE(same_bits(attention(qkv, heads), plain_attention));
  }
  REQUIRE(ProductPrecision::current() == Precision::float32);
}

TEST_CASE("a tape has one precision, until it is empty") {
  Tape tape;
  Layer layer;
  {
    const Recording on(tape);
    linear(random(1, {kRows, kIn}), *layer.weight);
  }
  const ProductPrecision rounding(Precision::bfloat16);
  REQUIRE_THROWS_WITH(Recording(tape),
                      "recording: the tape was begun with products in float32; got bfloat16; record on "
                      "another tape, or clear() it");
  tape.clear();
  REQUIRE_NOTHROW(Recording(tape));
}

TEST_CASE("recomputed products round like those that were dropped") {
  Layer layer;
  const Tensor x = random(1, {kRows, kIn}), dy = random(2, {kRows, kOut});
  const auto gradient = [&](bool recomputes) {
    layer.store.clear_gradients();
    Tape tape;
    Tensor y, input;
    {
      const ProductPrecision rounding(Precision::bfloat16);
      const Recording on(tape);
      input = tape.watch(x);
      const auto layer_of = [&](const Tensor& z) { return linear(gelu(z), *layer.weight); };
      y = recomputes ? recompute(input, layer_of) : layer_of(input);
    }
    tape.backward(y, dy);
    return std::pair{layer.weight->gradient().clone(), tape.gradient(input)};
  };
  const auto [kept_weight, kept_x] = gradient(false);
  const auto [again_weight, again_x] = gradient(true);
  REQUIRE(same_bits(kept_weight, again_weight));
  REQUIRE(same_bits(kept_x, again_x));
}

TEST_CASE("products in bfloat16, not in float32, read the rounded copy of weights, which changes no bit") {
  for (const auto& [name, op] : kOpsWithWeights) {
    INFO(name);
    RoundedLayers layers;
    const auto without = run_op(op, layers, Precision::bfloat16), exact = run_op(op, layers, Precision::float32);
    layers.fill_copy([](float x) { return x; });
    const auto with = run_op(op, layers, Precision::bfloat16);
    for (std::size_t i = 0; i < with.size(); ++i) REQUIRE(same_bits(with[i], without[i]));

    layers.fill_copy([](float x) { return -x; });
    const auto other = run_op(op, layers, Precision::bfloat16), same = run_op(op, layers, Precision::float32);
    for (std::size_t i = 0; i < 2; ++i) REQUIRE_FALSE(same_bits(other[i], without[i]));
    for (std::size_t i = 0; i < same.size(); ++i) REQUIRE(same_bits(same[i], exact[i]));
    const Tensor x = random(1, {kRows, kIn});
    const ProductPrecision rounding(Precision::bfloat16);
    const Tensor unrecorded = op(x, layers);
    layers.store.mark_changed();
    REQUIRE(same_bits(op(x, layers), unrecorded));
    const auto stale = run_op(op, layers, Precision::bfloat16);
    for (std::size_t i = 0; i < stale.size(); ++i) REQUIRE(same_bits(stale[i], without[i]));
  }
}
