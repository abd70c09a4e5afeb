// Attention with a mask for every query, against the forms of attention that it contains.
#include "autograd/ops/attention_mask.h"

#include <cmath>
#include <limits>
#include <map>

#include "autograd/ops.h"
#include "autograd/tape.h"
#include "tests/catch.h"
#include "tests/ops/op_case.h"
#include "tests/ops/op_table.h"
#include "tests/tensors.h"

using namespace maki;
using namespace maki::tests;

namespace {

// [queries, keys] with 1 where visible(t, s).
template <class F>
Tensor mask_where(std::int64_t queries, std::int64_t keys, const F& visible) {
  Tensor mask = empty({queries, keys}, DType::int32);
  for (std::int64_t i = 0; i < mask.numel(); ++i) mask.data<std::int32_t>()[i] = visible(i / keys, i % keys) ? 1 : 0;
  return mask;
}

// y and the gradients of q and k‖v for the cotangent dy.
std::vector<Tensor> run(const Tensor& q, const Tensor& kv, const Attention& options, const Tensor& dy) {
  Tape tape;
  Tensor x, memory;
  const Tensor y = [&] {
    const Recording on(tape, {.seed = 7});
    return attention(x = tape.watch(q), memory = tape.watch(kv), options);
  }();
  tape.backward(y, dy);
  return {y.detach(), tape.gradient(x), tape.gradient(memory)};
}

std::int64_t runs_of(const Tensor& mask, bool causal) {
  return static_cast<std::int64_t>(mask_runs(mask, {}, 3, causal).size());
}

}  // namespace

TEST_CASE(
    "attention mask: the causal mask, a key mask and a mask of ones have the values of the options they replace") {
  // With 16 queries and keys the masks fill their blocks of memory, which a sanitizer watches.
  for (const std::int64_t queries : {5, 16, 70, 140}) {
    for (const std::int64_t more : {0, 9}) {
      Draw draw(static_cast<std::uint64_t>(queries + more));
      const std::int64_t batch = 2, keys = queries + more, width = 24;
      const Tensor q = draw.normals({batch, queries, width}), kv = draw.normals({batch, keys, 2 * width});
      const Tensor dy = draw.normals({batch, queries, width});
      const auto same = [&](const Attention& option, const Attention& mask) {
        const std::vector<Tensor> a = run(q, kv, option, dy), b = run(q, kv, mask, dy);
        REQUIRE(same_bits(a[0], b[0]));
        REQUIRE(largest_difference(a[1], b[1]) < 1e-13);
        REQUIRE(largest_difference(a[2], b[2]) < 1e-13);
      };
      const auto causal = [&](std::int64_t t, std::int64_t s) { return s <= t + more; };
      same({.n_head = 2, .causal = true}, {.n_head = 2, .mask = mask_where(queries, keys, causal)});
      same({.n_head = 2}, {.n_head = 2, .mask = full({batch, queries, keys}, DType::int32, 3)});
      Tensor key_mask = draw.integers({batch, keys}, 0, 2);
      Tensor mask = empty({batch, queries, keys}, DType::int32);
      for (std::int64_t i = 0; i < mask.numel(); ++i) {
        mask.data<std::int32_t>()[i] = key_mask.data<std::int32_t>()[i / (queries * keys) * keys + i % keys];
      }
      same({.n_head = 2, .key_mask = key_mask}, {.n_head = 2, .mask = mask});
      same({.n_head = 2, .causal = true, .key_mask = key_mask}, {.n_head = 2, .causal = true, .mask = mask});
      same({.n_head = 2, .causal = true, .key_mask = key_mask},
           {.n_head = 2, .key_mask = key_mask, .mask = mask_where(queries, keys, causal)});
    }
  }
}

TEST_CASE("attention mask: packed documents compute what each computes alone") {
  Draw draw(5);
  const std::vector<std::int64_t> begins = {0, 7, 8, 75, 110};
  const std::int64_t tokens = begins.back(), width = 12;
  const Tensor qkv = draw.normals({1, tokens, 3 * width});
  const auto document = [&](std::int64_t t) { return std::ranges::upper_bound(begins, t) - begins.begin(); };
  const Tensor mask =
      mask_where(tokens, tokens, [&](std::int64_t t, std::int64_t s) { return document(t) == document(s); });
  REQUIRE(runs_of(mask, false) == 4);
  REQUIRE(runs_of(mask, true) == 4);
  for (const bool causal : {false, true}) {
    const Tensor packed = attention(qkv, {.n_head = 3, .causal = causal, .mask = mask});
    for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
      const Tensor alone = attention(slice(qkv, 1, begins[i], begins[i + 1]), {.n_head = 3, .causal = causal});
      REQUIRE(largest_difference(slice(packed, 1, begins[i], begins[i + 1]), alone) < 1e-13);
    }
  }
}

TEST_CASE("attention mask: a prefix that reads itself in both directions, then causal text, takes two runs") {
  const std::int64_t tokens = 90, prefix = 40;
  const auto visible = [&](std::int64_t t, std::int64_t s) { return s < prefix || s <= t; };
  const Tensor mask = mask_where(tokens, tokens, visible);
  REQUIRE(runs_of(mask, false) == 2);
  Draw draw(6);
  const Tensor qkv = draw.normals({2, tokens, 36});
  const Tensor y = attention(qkv, {.n_head = 2, .mask = mask});
  const Tensor text = attention(qkv, {.n_head = 2, .causal = true});
  const Tensor read = attention(slice(qkv, 1, 0, prefix), {.n_head = 2});
  REQUIRE(same_bits(slice(y, 1, prefix, tokens), slice(text, 1, prefix, tokens)));
  REQUIRE(largest_difference(slice(y, 1, 0, prefix), read) < 1e-13);
}

TEST_CASE("attention mask: any mask equals attention of each query alone, and its gradients are their sums") {
  for (const bool causal : {false, true}) {
    Draw draw(causal ? 8 : 9);
    const std::int64_t batch = 2, queries = 20, keys = 90, width = 16;
    const Tensor q = draw.normals({batch, queries, width}), kv = draw.normals({batch, keys, 2 * width});
    const Tensor dy = draw.normals({batch, queries, width});
    Tensor mask = draw.integers({batch, queries, keys}, 0, 1);
    std::int32_t* const rows = mask.data<std::int32_t>();  // of the first sequence
    std::fill_n(rows + 3 * keys, keys, 0);                 // query 3 sees nothing
    // Query 6 sees what query 5 sees, except for the last key.
    std::copy_n(rows + 5 * keys, keys, rows + 6 * keys);
    rows[6 * keys + keys - 1] = 1 - rows[5 * keys + keys - 1];
    // Query 9 sees what query 8 sees, up to the key where the causal rule would end, and the last key.
    std::fill(rows + 8 * keys + 8 + keys - queries + 1, rows + 9 * keys, 0);
    std::copy_n(rows + 8 * keys, keys, rows + 9 * keys);
    rows[9 * keys + keys - 1] = 1;
    const std::vector<Tensor> y = run(q, kv, {.n_head = 2, .causal = causal, .mask = mask}, dy);
    Tensor dkv = zeros(kv.shape(), DType::float64);
    for (std::int64_t t = 0; t < queries; ++t) {
      Tensor key_mask = empty({batch, keys}, DType::int32);
      for (std::int64_t i = 0; i < key_mask.numel(); ++i) {
        const std::int64_t b = i / keys, s = i % keys;
        key_mask.data<std::int32_t>()[i] =
            causal && s > t + keys - queries ? 0 : mask.data<std::int32_t>()[(b * queries + t) * keys + s];
      }
      const std::vector<Tensor> one =
          run(slice(q, 1, t, t + 1), kv, {.n_head = 2, .key_mask = key_mask}, slice(dy, 1, t, t + 1));
      REQUIRE(largest_difference(slice(y[0], 1, t, t + 1), one[0]) < 1e-13);
      REQUIRE(largest_difference(slice(y[1], 1, t, t + 1), one[1]) < 1e-13);
      dkv = add(dkv, one[2]);
    }
    REQUIRE(largest_difference(y[2], dkv) < 1e-12);
    for (std::int64_t c = 0; c < width; ++c) {
      REQUIRE(y[0].at(3 * width + c) == 0);
      REQUIRE(y[1].at(3 * width + c) == 0);
    }
  }
}

TEST_CASE("attention mask: one that hides everything gives zeros and no gradient") {
  Draw draw(10);
  const Tensor q = draw.normals({2, 5, 8}), kv = draw.normals({2, 6, 16}), dy = draw.normals({2, 5, 8});
  for (const bool causal : {false, true}) {
    for (const Tensor& part : run(q, kv, {.n_head = 2, .causal = causal, .mask = zeros({5, 6}, DType::int32)}, dy)) {
      for (std::int64_t i = 0; i < part.numel(); ++i) REQUIRE(part.at(i) == 0);
    }
  }
}

TEST_CASE("attention mask: NaN behind the mask stays there") {
  Draw draw(11);
  Tensor qkv = draw.normals({1, 12, 24});
  const Tensor mask = mask_where(12, 12, [](std::int64_t t, std::int64_t s) { return s != 4 || t == 4; });
  const Tensor clean = attention(qkv, {.n_head = 2, .mask = mask});
  std::fill_n(qkv.data<double>() + 4 * 24, 24, std::numeric_limits<double>::quiet_NaN());
  const Tensor y = attention(qkv, {.n_head = 2, .mask = mask});
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    if (i / 8 == 4) {
      REQUIRE(std::isnan(y.at(i)));
    } else {
      REQUIRE(y.at(i) == clean.at(i));
    }
  }
}

TEST_CASE("attention mask: every weight of every run is dropped independently") {
  // All scores are equal and all values 1: an output tells how many of its weights were kept.
  const std::int64_t tokens = 64;
  const Tensor q = zeros({2, tokens, 4}, DType::float64), kv = full({2, tokens, 8}, DType::float64, 1);
  const Tensor mask = mask_where(tokens, tokens, [](std::int64_t t, std::int64_t s) { return s != t % 2; });
  REQUIRE(runs_of(mask, false) == tokens);
  Tape tape;
  const Recording on(tape, {.seed = 3});
  const Tensor y = attention(q, kv, {.n_head = 2, .mask = mask, .dropout = 0.5});
  std::map<double, int> seen;
  for (std::int64_t i = 0; i < y.numel(); i += 2) ++seen[y.at(i)];
  REQUIRE(seen.size() > 15);  // of 256 rows with 63 weights each; a stream that repeats would give the same few counts
}

TEST_CASE("attention mask: another shape or type is refused") {
  const Tensor q = zeros({2, 3, 4}, DType::float32), kv = zeros({2, 5, 8}, DType::float32);
  REQUIRE_THAT(refusal([&] {
                 attention(q, kv, {.n_head = 1, .mask = zeros({2, 5}, DType::int32)});
               }),
               ContainsSubstring("int32 [3, 5], one entry per query and key, or [2, 3, 5]; got int32 [2, 5]"));
  REQUIRE_THAT(refusal([&] {
                 attention(q, kv, {.n_head = 1, .mask = zeros({3, 5}, DType::float32)});
               }),
               ContainsSubstring("got float32 [3, 5]"));
}
