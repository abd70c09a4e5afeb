// Blocks with a key mask: padding has no influence on other tokens, with and without a cache.
#include <cmath>
#include <limits>

#include "autograd/gradcheck.h"
#include "nn/generate/kv_cache.h"
#include "nn/transformer.h"
#include "tests/catch.h"
#include "tests/nn/small_gpt.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr std::int64_t kMaskedBatch = 2, kMaskedTokens = 11, kMaskedWidth = 12;

struct SmallBlock {
  explicit SmallBlock(bool causal, DType dtype = DType::float64)
      : store(dtype), block(Scope(store), {{.n_head = 3, .n_embd = kMaskedWidth}, causal, /*projection_std=*/0.3}) {
    store.seal(/*seed=*/4);
  }
  ParameterStore store;
  Block block;
};

Tensor random_input(DType dtype) {
  const RandomStream stream(9, RandomPurpose::test);
  Tensor x = empty({kMaskedBatch, kMaskedTokens, kMaskedWidth}, DType::float64);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data<double>()[i] = stream.normal(static_cast<std::uint64_t>(i));
  return convert(x, dtype);
}

// Sequence 0 has `padding` tokens of padding at its beginning or at its end, sequence 1 has none.
Tensor padding_mask(std::int64_t padding, bool left) {
  Tensor mask = full({kMaskedBatch, kMaskedTokens}, DType::int32, 1);
  const std::int64_t begin = left ? 0 : kMaskedTokens - padding;
  for (std::int64_t t = 0; t < padding; ++t) mask.data<std::int32_t>()[begin + t] = 0;
  return mask;
}

}  // namespace

TEST_CASE("key mask: a padded sequence computes what it computes alone") {
  for (const bool causal : {false, true}) {
    const SmallBlock small(causal);
    const Tensor x = random_input(DType::float64);
    for (const std::int64_t padding : {1, 3, 8}) {
      const std::int64_t tokens = kMaskedTokens - padding;
      const Tensor alone = small.block(slice(slice(x, 0, 0, 1), 1, 0, tokens));
      const Tensor padded = small.block(x, nullptr, padding_mask(padding, false));
      for (std::int64_t i = 0; i < alone.numel(); ++i) REQUIRE(std::abs(padded.at(i) - alone.at(i)) < 1e-13);
      const Tensor second = small.block(slice(x, 0, 1, 2));
      for (std::int64_t i = 0; i < second.numel(); ++i) {
        REQUIRE(std::abs(padded.at(kMaskedTokens * kMaskedWidth + i) - second.at(i)) < 1e-13);
      }
    }
  }
}

TEST_CASE("key mask: NaN in padding stays there, and padding receives no gradient from other tokens") {
  const SmallBlock small(/*causal=*/false);
  const Tensor mask = padding_mask(3, false);
  Tensor x = random_input(DType::float64);
  const Tensor clean = small.block(x, nullptr, mask);
  x = x.clone();
  const std::int64_t begin = (kMaskedTokens - 3) * kMaskedWidth, end = kMaskedTokens * kMaskedWidth;
  std::fill(x.data<double>() + begin, x.data<double>() + end, std::numeric_limits<double>::quiet_NaN());
  const Tensor poisoned = small.block(x, nullptr, mask);
  REQUIRE(same_bits(poisoned, 0, clean, 0, begin));
  REQUIRE(same_bits(poisoned, end, clean, end, clean.numel() - end));

  Tape tape;
  Tensor watched;
  const Tensor used = [&] {
    const Recording on(tape);
    return slice(small.block(watched = tape.watch(random_input(DType::float64)), nullptr, mask), 1, 0,
                 kMaskedTokens - 3);
  }();
  tape.backward(used, full(used.shape(), DType::float64, 1));
  const Tensor dx = tape.gradient(watched);
  for (std::int64_t i = begin; i < end; ++i) REQUIRE(dx.at(i) == 0);
  REQUIRE(dx.at(begin - 1) != 0);
  REQUIRE(dx.at(dx.numel() - 1) != 0);  // the other sequence has no padding
}

TEST_CASE("key mask: the gradient of every parameter of a masked block") {
  SmallBlock small(/*causal=*/false);
  const Tensor x = random_input(DType::float64), mask = padding_mask(4, false);
  const auto forward = [&] { return slice(small.block(x, nullptr, mask), 1, 0, kMaskedTokens - 4); };
  for (const GradcheckResult& result : gradcheck(small.store, forward, {.relative_floor = 1e-3})) {
    INFO(result.name << ": error " << result.error);
    REQUIRE(result.passed(1e-8));
  }
}

TEST_CASE("key mask: with a cache and padding on the left, outputs are those of the full forward, bit for bit") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const SmallBlock small(/*causal=*/true, dtype);
    const Tensor x = random_input(dtype), mask = padding_mask(4, true), expected = small.block(x, nullptr, mask);
    KvLayer cache(kMaskedBatch, kMaskedTokens, kMaskedWidth, dtype);
    for (std::int64_t begin = 0; begin < kMaskedTokens;) {
      const std::int64_t end = std::min(kMaskedTokens, begin == 0 ? 6 : begin + 1);
      Tensor seen = empty({kMaskedBatch, end}, DType::int32);
      for (std::int64_t i = 0; i < seen.numel(); ++i) {
        seen.data<std::int32_t>()[i] = mask.data<std::int32_t>()[i / end * kMaskedTokens + i % end];
      }
      const Tensor y = small.block(slice(x, 1, begin, end), &cache, seen);
      for (std::int64_t b = 0; b < kMaskedBatch; ++b) {
        REQUIRE(same_bits(y, b * (end - begin) * kMaskedWidth, expected, (b * kMaskedTokens + begin) * kMaskedWidth,
                          (end - begin) * kMaskedWidth));
      }
      begin = end;
    }
  }
}

TEST_CASE("mask: packed documents compute what each computes alone, also with a cache") {
  const SmallBlock small(/*causal=*/true);
  const Tensor x = random_input(DType::float64);
  Tensor mask = empty({kMaskedTokens, kMaskedTokens}, DType::int32);
  for (std::int64_t i = 0; i < mask.numel(); ++i) {
    mask.data<std::int32_t>()[i] = (i / kMaskedTokens < 4) == (i % kMaskedTokens < 4) ? 1 : 0;
  }
  const Tensor y = small.block(x, nullptr, {}, mask), second = small.block(slice(x, 1, 4, kMaskedTokens));
  for (std::int64_t i = 0; i < second.numel(); ++i) {
    const std::int64_t size = (kMaskedTokens - 4) * kMaskedWidth,
                       at = i / size * kMaskedTokens * kMaskedWidth + 4 * kMaskedWidth + i % size;
    REQUIRE(std::abs(y.at(at) - second.at(i)) < 1e-13);
  }
  KvLayer cache(kMaskedBatch, kMaskedTokens, kMaskedWidth, DType::float64);
  for (std::int64_t t = 0; t < kMaskedTokens; ++t) {
    Tensor row = empty({1, t + 1}, DType::int32);
    std::copy_n(mask.data<std::int32_t>() + t * kMaskedTokens, t + 1, row.data<std::int32_t>());
    const Tensor next = small.block(slice(x, 1, t, t + 1), &cache, {}, row);
    for (std::int64_t b = 0; b < kMaskedBatch; ++b) {
      REQUIRE(same_bits(next, b * kMaskedWidth, y, (b * kMaskedTokens + t) * kMaskedWidth, kMaskedWidth));
    }
  }
}

TEST_CASE("key mask: another shape is rejected, with and without a cache") {
  const SmallBlock small(/*causal=*/true);
  const Tensor x = random_input(DType::float64);
  REQUIRE_THROWS_WITH(small.block(x, nullptr, full({kMaskedBatch, 3}, DType::int32, 1)), ContainsSubstring("[2, 11]"));
  KvLayer cache(kMaskedBatch, kMaskedTokens, kMaskedWidth, DType::float64);
  REQUIRE_THROWS_WITH(small.block(x, &cache, full({1, kMaskedTokens}, DType::int32, 1)),
                      ContainsSubstring("kv cache: key_mask must be [2, 11]") && ContainsSubstring("got [1, 11]"));
  REQUIRE(cache.length() == 0);
}
