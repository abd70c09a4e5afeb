// Products whose operands or result are bfloat16 numbers in memory, and the factor of a product: against products of
// float32 numbers, bit for bit.
#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/kernels/column_sum.h"
#include "autograd/kernels/gemm/gemm.h"
#include "autograd/kernels/simd/stream.h"
#include "tests/catch.h"
#include "tests/kernels/bf16_units.h"
#include "tests/kernels/gemm_case.h"
#include "tests/kernels/gemm_chain.h"

namespace maki::kernels {
namespace {

std::vector<BFloat16> to_bfloat16(const std::vector<float>& x) {
  std::vector<BFloat16> y(x.size());
  std::ranges::transform(x, y.begin(), [](float v) {
    return BFloat16{static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(bf16_nearest(v)) >> 16)};
  });
  return y;
}

/// The operands of one product, in float32 and rounded.
struct Operands {
  explicit Operands(const GemmSizes& size) : s(size), a(numbers<float>(s.m * s.k, 1)), b(numbers<float>(s.n * s.k, 2)) {
    a16 = to_bfloat16(a);
    b16 = to_bfloat16(b);
  }
  Gemm<float> product(bool a_transposed, bool b_transposed, bool a_rounded, bool b_rounded) const {
    Gemm<float> g{.m = s.m, .n = s.n, .k = s.k};
    g.a = a_rounded ? GemmOperand<float>(a16.data()) : GemmOperand<float>(a.data());
    g.b = b_rounded ? GemmOperand<float>(b16.data()) : GemmOperand<float>(b.data());
    g.a_transposed = a_transposed;
    g.b_transposed = b_transposed;
    g.lda = a_transposed ? s.m : s.k;
    g.ldb = b_transposed ? s.k : s.n;
    g.rounds_operands = true;
    return g;
  }
  GemmSizes s;
  std::vector<float> a, b;
  std::vector<BFloat16> a16, b16;
};

std::vector<float> result_of(Gemm<float> g) {
  std::vector<float> c(static_cast<std::size_t>(g.m * g.n), kNaN<float>);
  g.c = c.data();
  g.ldc = g.n;
  run(g);
  return c;
}

/// The number of wrong elements of g with a rounded result, of its derivative and of the columns beyond.
std::int64_t wrong_in_rounded(Gemm<float> g, std::int64_t extra, std::int64_t offset) {
  const std::int64_t ldc = g.n + extra;
  const auto make = [&](std::int64_t seed) { return numbers<float>(g.m * ldc, static_cast<std::uint64_t>(seed)); };
  const std::vector<float> factor = make(5);
  std::vector<float> c = make(6), derivative = make(7), derivative16 = derivative;
  if (g.factor != nullptr) g.factor = factor.data();
  const bool has_derivative = g.activation != GemmActivation::none;
  g.ldc = ldc;
  g.c = c.data();
  g.derivative = has_derivative ? derivative.data() : nullptr;
  run(g);
  Scratch<BFloat16> memory((g.m * ldc + offset) * std::int64_t{sizeof(BFloat16)});
  BFloat16* const c16 = memory.data() + offset;
  g.c = nullptr;
  g.c_rounded = c16;
  g.derivative = has_derivative ? derivative16.data() : nullptr;
  run(g);
  REQUIRE(memory.guard_is_intact());
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < g.m * ldc; ++i) {
    const float got = to_float(c16[i]), wanted = bf16_nearest(c[static_cast<std::size_t>(i)]);
    const bool beyond = i % ldc >= g.n;
    wrong += beyond ? c16[i].bits != 0xFFFF : !same_bits(got, wanted) && !(got == 0 && wanted == 0);
  }
  return wrong + !equal_bits(derivative, derivative16);
}

TEST_CASE("operands that are bfloat16 numbers in memory give the bits of those that are rounded", "[gemm]") {
  on_every_unit([] {
    for (const GemmSizes& size :
         {GemmSizes{1, 1, 1}, {5, 40, 33}, {33, 17, 70}, {70, 65, 31}, {64, 96, 64}, {490, 33, 520}, {40, 530, 600}}) {
      const Operands x(size);
      for (int turn = 0; turn < 4; ++turn) {
        const bool at = turn % 2 == 1, bt = turn / 2 == 1;
        INFO("m " << size.m << " n " << size.n << " k " << size.k << " layout " << turn);
        const std::vector<float> wanted = result_of(x.product(at, bt, false, false));
        REQUIRE(equal_bits(result_of(x.product(at, bt, true, false)), wanted));
        REQUIRE(equal_bits(result_of(x.product(at, bt, false, true)), wanted));
        with_every_team([&] { REQUIRE(equal_bits(result_of(x.product(at, bt, true, true)), wanted)); });
      }
    }
  });
}

TEST_CASE("a rounded result is the rounded result of the same product, with bias, activation or factor", "[gemm]") {
  on_every_unit([] {
    int products = 0;
    for (const GemmSizes& size :
         {GemmSizes{1, 1, 0}, {3, 5, 1}, {33, 17, 70}, {70, 65, 31}, {64, 96, 64}, {300, 40, 1536}, {40, 1300, 700}}) {
      const Operands x(size);
      const std::vector<float> bias = numbers<float>(size.n, 4);
      for (int turn = 0; turn < 4; ++turn, ++products) {
        Gemm<float> g = x.product(false, products % 2 == 1, turn == 3, false);
        INFO("m " << size.m << " n " << size.n << " k " << size.k << " turn " << turn);
        if (turn > 0) g.bias = bias.data();
        if (turn == 1) g.activation = GemmActivation::gelu;
        if (turn == 2) g.activation = GemmActivation::gelu_tanh;
        if (turn == 3) g.factor = bias.data();  // replaced by one of the size of C
        with_every_team([&] { REQUIRE(wrong_in_rounded(g, 3, 1) == 0); });
      }
    }
    REQUIRE(products == 28);
  });
}

TEST_CASE("a rounded result has the same bits if it is stored past the caches", "[gemm]") {
  const Streaming on;
  on_every_unit([] {
    const Operands x({1030, 1056, 9});
    for (const auto activation : {GemmActivation::none, GemmActivation::gelu}) {
      Gemm<float> g = x.product(false, true, false, false);
      g.activation = activation;
      REQUIRE(goes_past_caches<BFloat16>(nullptr, g.n, g.m * g.n * 4));
      REQUIRE(wrong_in_rounded(g, 0, 0) == 0);
      REQUIRE(wrong_in_rounded(g, 0, 3) == 0);
    }
  });
}

/// The product of operands of ones with a factor is the factor times k, in every precision and on every target.
template <class T>
void require_factor(bool rounds, std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::vector<T> a(static_cast<std::size_t>(m * k), T{1}), b(static_cast<std::size_t>(n * k), T{1}),
      factor = numbers<T>(m * n, 3);
  std::vector<T> c(static_cast<std::size_t>(m * n), kNaN<T>);
  for (const bool b_transposed : {false, true}) {
    Gemm<T> g{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .b = b.data(), .ldb = b_transposed ? k : n};
    g.b_transposed = b_transposed;
    g.c = c.data();
    g.ldc = n;
    g.factor = factor.data();
    g.rounds_operands = rounds;
    run(g);
    for (std::size_t i = 0; i < c.size(); ++i) REQUIRE(same_bits(c[i], static_cast<T>(k) * factor[i]));
  }
}

TEST_CASE("a product with a factor is multiplied by it, element by element", "[gemm]") {
  on_every_target_with_amx([] {
    for (const GemmSizes& s : {GemmSizes{1, 5, 3}, {4, 40, 600}, {130, 140, 1100}}) {
      INFO("m " << s.m << " n " << s.n << " k " << s.k);
      with_every_team([&] {
        require_factor<float>(false, s.m, s.n, s.k);
        require_factor<double>(false, s.m, s.n, s.k);
      });
    }
  });
  on_every_unit([] { require_factor<float>(true, 130, 140, 600); });
}

TEST_CASE("bfloat16 numbers and factors are refused where a product cannot take them", "[gemm]") {
  const Operands x({4, 4, 4});
  std::vector<float> c(16);
  std::vector<BFloat16> c16(16);
  const auto refusal = [&](const auto& change) {
    Gemm<float> g = x.product(false, false, false, false);
    g.c = c.data();
    g.ldc = 4;
    change(g);
    Scratch<float> scratch(gemm_scratch_bytes(g));
    try {
      gemm(g, scratch.span());
    } catch (const maki::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string rounds = "gemm: bfloat16 numbers need a product that rounds its operands";
  const std::string result = "gemm: a rounded result needs beta 0, one item, a row-major A and k up to 1536";
  REQUIRE(refusal([](Gemm<float>& /*g*/) {}).empty());
  REQUIRE(refusal([&](Gemm<float>& g) {
            g.a = x.a16.data();
            g.rounds_operands = false;
          }) == rounds);
  REQUIRE(refusal([&](Gemm<float>& g) {
            g.b = x.b16.data();
            g.rounds_operands = false;
          }) == rounds);
  REQUIRE(refusal([&](Gemm<float>& g) {
            g.c_rounded = c16.data();
            g.rounds_operands = false;
          }) == rounds);
  REQUIRE_THAT(refusal([&](Gemm<float>& g) {
                 g.c_rounded = c16.data();
                 g.beta = 1;
               }),
               ContainsSubstring(result + "; got beta 1"));
  REQUIRE_THAT(refusal([&](Gemm<float>& g) {
                 g.c_rounded = c16.data();
                 g.a_transposed = true;
               }),
               ContainsSubstring(result));
  REQUIRE_THAT(refusal([&](Gemm<float>& g) {
                 g.c_rounded = c16.data();
                 g.batch = 2;
                 g.stride_c = 16;
               }),
               ContainsSubstring(result + "; got beta 0, batch 2, k 4"));
  REQUIRE_THAT(refusal([&](Gemm<float>& g) {
                 g.c_rounded = c16.data();
                 g.k = g.lda = 1537;
               }),
               ContainsSubstring(result + "; got beta 0, batch 1, k 1537"));
  REQUIRE(refusal([&](Gemm<float>& g) {
            g.factor = c.data();
            g.activation = GemmActivation::gelu;
          }) == "gemm: a factor must come without an activation");
}

TEST_CASE("column sums of rounded numbers are the sums of what they are rounded to, also of rows apart", "[gemm]") {
  on_every_target_with_amx([] {
    for (const std::int64_t cols : {1, 7, 64, 150}) {
      constexpr std::int64_t kRows = 300;
      const std::vector<float> x = numbers<float>(kRows * cols, 1);
      const std::vector<BFloat16> x16 = to_bfloat16(x);
      std::vector<float> nearest(x.size());
      std::ranges::transform(x, nearest.begin(), bf16_nearest);
      const std::int64_t stride = cols + kMarginColumns;
      const std::vector<float> wide = with_margin(x, kRows, cols), wide_nearest = with_margin(nearest, kRows, cols);
      const std::vector<BFloat16> wide16 = to_bfloat16(wide);
      for (const bool add : {false, true}) {
        std::vector<float> sums[6];
        for (auto& s : sums) s.assign(static_cast<std::size_t>(cols), 1);
        column_sum(kRows, cols, nearest.data(), cols, Sink<float>{sums[0].data(), add});
        column_sum(kRows, cols, wide_nearest.data(), stride, Sink<float>{sums[1].data(), add});
        rounded_column_sum(kRows, cols, x.data(), cols, Sink<float>{sums[2].data(), add});
        rounded_column_sum(kRows, cols, wide.data(), stride, Sink<float>{sums[3].data(), add});
        rounded_column_sum(kRows, cols, x16.data(), cols, Sink<float>{sums[4].data(), add});
        rounded_column_sum(kRows, cols, wide16.data(), stride, Sink<float>{sums[5].data(), add});
        for (const auto& s : sums) REQUIRE(equal_bits(sums[0], s));
      }
    }
  });
}

}  // namespace
}  // namespace maki::kernels
