// Attention as an op: its Jacobian entry by entry, the key mask, dropout, and the inputs that it rejects.
// tests/kernels/attention_test.cpp compares the kernels with a plain reference.
#include <cmath>

#include "autograd/ops.h"
#include "autograd/tape.h"
#include "tests/catch.h"
#include "tests/ops/jacobian.h"
#include "tests/ops/op_case.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("attention: the full causal Jacobian, entry by entry, and exact zeros for what is masked") {
  std::int64_t zeros_seen = 0, compared = 0;
  for (const std::int64_t tokens : {1, 2, 3, 5, 8}) {
    Draw draw(static_cast<std::uint64_t>(tokens));
    const std::int64_t heads = 2, width = 6;
    const Tensor x = draw.normals({1, tokens, 3 * width});
    const auto f = [&](const Tensor& qkv) { return attention(qkv, {.n_head = heads, .causal = true}); };
    const Masked masked = [&](std::int64_t out, std::int64_t in) {
      const std::int64_t from = in / (3 * width), head_in = in % width / (width / heads);
      const std::int64_t to = out / width, head_out = out % width / (width / heads);
      const bool is_query = in % (3 * width) < width;
      const bool zero = head_in != head_out || (is_query ? from != to : from > to);
      ++(zero ? zeros_seen : compared);
      return zero;
    };
    INFO(tokens << " tokens");
    REQUIRE(require_jacobian(x, f, 1e-9, masked).outputs == tokens * width);
  }
  REQUIRE(zeros_seen > 1000);
  REQUIRE(compared > 1000);
}

TEST_CASE("attention: packed and separate projections give the same result") {
  Draw draw(3);
  const std::int64_t batch = 2, tokens = 70, width = 24;
  const Tensor qkv = draw.normals({batch, tokens, 3 * width});
  Tensor q = empty({batch, tokens, width}, DType::float64), kv = empty({batch, tokens, 2 * width}, DType::float64);
  for (std::int64_t row = 0; row < batch * tokens; ++row) {
    const double* const from = qkv.data<double>() + row * 3 * width;
    std::copy(from, from + width, q.data<double>() + row * width);
    std::copy(from + width, from + 3 * width, kv.data<double>() + row * 2 * width);
  }
  const Attention options{.n_head = 3, .causal = true};
  const Tensor a = attention(qkv, options), b = attention(q, kv, options);
  for (std::int64_t i = 0; i < a.numel(); ++i) REQUIRE(a.at(i) == b.at(i));
}

TEST_CASE("attention: an explicit scale acts like queries scaled by it, and 0 means one over the root of D") {
  Draw draw(6);
  const Tensor q = draw.normals({2, 5, 8}), kv = draw.normals({2, 7, 16});
  const Tensor scaled = attention(q, kv, {.n_head = 2, .scale = 0.3}), plain = attention(q, kv, {.n_head = 2});
  const Tensor longer = attention(scale(q, 0.3 * 2), kv, {.n_head = 2});  // √D = 2
  const Tensor same = attention(q, kv, {.n_head = 2, .scale = 0.5});
  double difference = 0;
  for (std::int64_t i = 0; i < scaled.numel(); ++i) {
    REQUIRE(scaled.at(i) == Approx(longer.at(i)).margin(1e-13));
    REQUIRE(plain.at(i) == Approx(same.at(i)).margin(1e-13));
    difference += std::abs(scaled.at(i) - plain.at(i));
  }
  REQUIRE(difference > 0.1);
}

TEST_CASE("attention: a mask of ones changes nothing, and permuting the batch permutes the output") {
  Draw draw(4);
  const Tensor qkv = draw.normals({2, 70, 36});
  Attention options{.n_head = 2};
  const Tensor plain = attention(qkv, options);
  options.key_mask = full({2, 70}, DType::int32, 1);
  const Tensor masked = attention(qkv, options);
  Tensor swapped = empty(qkv.shape(), DType::float64);
  const std::int64_t half = qkv.numel() / 2, half_y = plain.numel() / 2;
  for (std::int64_t i = 0; i < qkv.numel(); ++i) {
    swapped.data<double>()[i] = qkv.data<double>()[(i + half) % qkv.numel()];
  }
  const Tensor y = attention(swapped, {.n_head = 2});
  for (std::int64_t i = 0; i < plain.numel(); ++i) {
    REQUIRE(plain.at(i) == masked.at(i));
    REQUIRE(y.at(i) == plain.at((i + half_y) % plain.numel()));
  }
}

TEST_CASE("attention: dropout drops the given fraction of weights, only in a recording, the same in both precisions") {
  // All values are 1, so an output is the sum of the weights kept, divided by 1 − p.
  const std::int64_t tokens = 200;
  Draw draw(5);
  const Tensor q = draw.normals({1, tokens, 8}, 0, 0.01);
  Tensor kv = draw.normals({1, tokens, 16});
  for (std::int64_t i = 0; i < kv.numel(); ++i) {
    if (i % 16 >= 8) kv.data<double>()[i] = 1;
  }
  const Attention options{.n_head = 1, .dropout = 0.25};
  const Tensor outside = attention(q, kv, options);
  REQUIRE(outside.at(0) == Approx(1).epsilon(1e-12));
  Tape tape;
  const auto recorded = [&](DType dtype, std::uint64_t step) {
    const Recording on(tape, RandomContext{.seed = 1, .step = step});
    return attention(convert(q, dtype), convert(kv, dtype), options);
  };
  const Tensor a = recorded(DType::float64, 1), b = recorded(DType::float64, 2), c = recorded(DType::float32, 1);
  double mean = 0, moved = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    mean += a.at(i) / static_cast<double>(a.numel());
    moved += std::abs(a.at(i) - b.at(i));
    REQUIRE(c.at(i) == Approx(a.at(i)).epsilon(1e-5));
  }
  REQUIRE(std::abs(mean - 1) < 0.01);  // the standard deviation of the mean of 40,000 draws is 0.003
  // The weights are nearly equal, so the variance of an output is p / (1 − p) / tokens. 200 rows estimate it to ±10 %.
  double variance = 0;
  for (std::int64_t t = 0; t < tokens; ++t) variance += std::pow(a.at(8 * t) - mean, 2) / static_cast<double>(tokens);
  REQUIRE(variance * static_cast<double>(tokens) == Approx(0.25 / 0.75).epsilon(0.4));
  REQUIRE(moved > 1);
}

TEST_CASE(
    "attention: as many heads of keys as of queries are the usual attention, and fewer make packed inputs narrow") {
  Draw draw(7);
  const Tensor qkv = draw.normals({2, 70, 36});
  const Tensor plain = attention(qkv, {.n_head = 3, .causal = true});
  const Tensor same = attention(qkv, {.n_head = 3, .n_kv_head = 3, .causal = true});
  for (std::int64_t i = 0; i < plain.numel(); ++i) REQUIRE(plain.at(i) == same.at(i));
  // Four heads of three columns share two of keys and two of values.
  const Tensor grouped = draw.normals({2, 70, 24});
  const Attention options{.n_head = 4, .n_kv_head = 2, .causal = true};
  const Tensor packed = attention(grouped, options);
  REQUIRE(packed.shape() == Shape{2, 70, 12});
  const Tensor separate = attention(slice(grouped, 2, 0, 12), slice(grouped, 2, 12, 24), options);
  for (std::int64_t i = 0; i < packed.numel(); ++i) REQUIRE(packed.at(i) == separate.at(i));
  REQUIRE_THAT(refusal([&] { attention(qkv, {.n_head = 4, .n_kv_head = 3}); }),
               ContainsSubstring("n_kv_head must be 0 or divide n_head; got 3 and 4"));
  REQUIRE_THAT(refusal([&] { attention(qkv, {.n_head = 4, .n_kv_head = -2}); }), ContainsSubstring("got -2 and 4"));
  REQUIRE_THAT(refusal([&] { attention(slice(qkv, 2, 0, 35), {.n_head = 4, .n_kv_head = 2}); }),
               ContainsSubstring("[B, T, (n_head + 2 n_kv_head) D]; got [2, 70, 35]"));
  REQUIRE_THAT(refusal([&] { attention(slice(qkv, 2, 0, 12), slice(qkv, 2, 12, 36), options); }),
               ContainsSubstring("[B, S, 2 n_kv_head D]; got [2, 70, 12] and [2, 70, 24]"));
}

TEST_CASE("attention: the messages for inputs that it rejects") {
  const Tensor qkv = zeros({2, 3, 12}, DType::float32), kv = zeros({2, 5, 8}, DType::float32);
  const Tensor q = zeros({2, 3, 4}, DType::float32);
  REQUIRE_THAT(refusal([&] { attention(qkv, {.n_head = 3}); }), ContainsSubstring("divide the width 4; got 3"));
  REQUIRE_THAT(refusal([&] { attention(qkv, {.n_head = 0}); }), ContainsSubstring("got 0"));
  REQUIRE_THAT(refusal([&] { attention(q, {.n_head = 1}); }), ContainsSubstring("[B, T, 3C]; got [2, 3, 4]"));
  REQUIRE_THAT(refusal([&] { attention(q, qkv, {.n_head = 1}); }), ContainsSubstring("[2, 3, 4] and [2, 3, 12]"));
  REQUIRE_THAT(refusal([&] { attention(q, convert(kv, DType::float64), {.n_head = 1}); }),
               ContainsSubstring("float32 and float64"));
  REQUIRE_THAT(refusal([&] { attention(Tensor(), {.n_head = 1}); }), ContainsSubstring("empty tensor"));
  REQUIRE_THAT(refusal([&] { attention(q, kv, {.n_head = 1, .dropout = 1}); }), ContainsSubstring("[0, 1); got 1"));
  REQUIRE_THAT(refusal([&] { attention(q, kv, {.n_head = 1, .scale = std::nan("")}); }), ContainsSubstring("finite"));
  REQUIRE_THAT(refusal([&] {
                 attention(q, kv, {.n_head = 1, .key_mask = zeros({2, 3}, DType::int32)});
               }),
               ContainsSubstring("int32 [2, 5], one entry per sequence and key; got int32 [2, 3]"));
}

TEST_CASE("rotary: the messages for inputs that it refuses") {
  const Tensor x = zeros({2, 3, 12}, DType::float32), angles = zeros({3, 4}, DType::float32);
  REQUIRE_THAT(refusal([&] { rotary(x, angles, 4); }),
               ContainsSubstring("rotary: 12 columns have room for at most 3 heads of 4 columns; got 4"));
  REQUIRE_THAT(refusal([&] { rotary(x, angles, -1); }), ContainsSubstring("got -1"));
  REQUIRE_THAT(refusal([&] { rotary(x, zeros({3, 3}, DType::float32), 2); }), ContainsSubstring("must be even; got 3"));
  REQUIRE_THAT(refusal([&] {
                 rotary(x, zeros({2, 4}, DType::float32), 2);
               }),
               ContainsSubstring("[B, T, W] and the angles [T, D]; got [2, 3, 12] and [2, 4]"));
  REQUIRE_THAT(refusal([&] { rotary(x, convert(angles, DType::float64), 2); }),
               ContainsSubstring("float32 and float64"));
  REQUIRE_THAT(refusal([&] { rotary(x, Tensor(), 2); }), ContainsSubstring("empty tensor"));
}
