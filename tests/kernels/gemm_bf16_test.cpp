// Products that round their operands to bfloat16, against the plain loops of tests/kernels/gemm_chain.h, bit for bit,
// on every target and on every unit that multiplies.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "autograd/kernels/gemm/bf16.h"
#include "autograd/kernels/gemm/gemm.h"
#include "tests/catch.h"
#include "tests/kernels/bf16_units.h"
#include "tests/kernels/gemm_case.h"
#include "tests/kernels/gemm_chain.h"

namespace maki::kernels {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// One product with its operands in both layouts, with margins.
struct Bf16Problem {
  Bf16Problem(std::int64_t m_, std::int64_t n_, std::int64_t k_)
      : m(m_), n(n_), k(k_), a(numbers<float>(m * k, 1)), b(numbers<float>(n * k, 2)) {
    lay_out();
  }
  void lay_out() {
    std::vector<float> at(a.size()), bt(b.size());
    for (std::int64_t p = 0; p < k; ++p) {
      for (std::int64_t i = 0; i < m; ++i) at[index(p * m + i)] = a[index(i * k + p)];
      for (std::int64_t j = 0; j < n; ++j) bt[index(p * n + j)] = b[index(j * k + p)];
    }
    wide_a = with_margin(a, m, k);
    wide_at = with_margin(at, k, m);
    wide_b = with_margin(b, n, k);
    wide_bt = with_margin(bt, k, n);
  }
  /// The result on the unit in use: [m, n]. Plain loops take longer than the products, so each is computed once.
  const std::vector<float>& wanted(bool adds, bool with_bias) const {
    std::vector<float>& rows = wanted_[{bf16_unit(), adds, with_bias}];
    if (!rows.empty()) return rows;
    for (std::int64_t i = 0; i < m * n; ++i) {
      const float c_before = adds ? c[index(i)] : -0.0F;  // -0 + y is y, whatever y is
      rows.push_back(bf16_element_of(&a[index(i / n * k)], &b[index(i % n * k)], k, c_before,
                                     with_bias ? bias[index(i % n)] : 0, bf16_unit()));
    }
    return rows;
  }
  std::int64_t m, n, k;
  std::vector<float> a, b;                              // [m, k] and [n, k]
  std::vector<float> wide_a, wide_at, wide_b, wide_bt;  // with margins, the second and the last transposed
  std::vector<float> c = numbers<float>(m * n, 3), bias = numbers<float>(n, 4);

 private:
  mutable std::map<std::tuple<Bf16Unit, bool, bool>, std::vector<float>> wanted_;
};

/// The number of elements with wrong bits, and of numbers written beyond C.
std::int64_t differences(const Bf16Problem& x, const Variant& v) {
  const std::int64_t ldc = x.n + kMarginColumns;
  std::vector<float> c(index(x.m * ldc), kNaN<float>);
  for (std::int64_t i = 0; i < x.m && v.beta == 1; ++i) std::copy_n(&x.c[index(i * x.n)], x.n, &c[index(i * ldc)]);
  Gemm<float> g{.m = x.m, .n = x.n, .k = x.k, .c = c.data(), .ldc = ldc, .beta = v.beta};
  g.a = v.a_transposed ? x.wide_at.data() : x.wide_a.data();
  g.lda = (v.a_transposed ? x.m : x.k) + kMarginColumns;
  g.a_transposed = v.a_transposed;
  g.b = v.b_transposed ? x.wide_b.data() : x.wide_bt.data();
  g.ldb = (v.b_transposed ? x.k : x.n) + kMarginColumns;
  g.b_transposed = v.b_transposed;
  g.bias = v.with_bias ? x.bias.data() : nullptr;
  g.rounds_operands = true;
  Scratch<float> packed(v.packed ? packed_size(g) * std::int64_t{sizeof(float)} : 0);
  if (v.packed) {
    pack_b(g, packed.data());
    REQUIRE(packed.guard_is_intact());
    g.b = {};
    g.b_packed = packed.data();
  }
  run(g);
  const std::vector<float>& all_wanted = x.wanted(v.beta == 1, v.with_bias);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < x.m; ++i) {
    for (std::int64_t j = 0; j < x.n; ++j) {
      const float wanted = all_wanted[index(i * x.n + j)], got = c[index(i * ldc + j)];
      wrong += !same_bits(got, wanted) && !(got == 0 && wanted == 0);  // the sign of an underflow is not promised
    }
    for (std::int64_t j = x.n; j < ldc; ++j) wrong += !std::isnan(c[index(i * ldc + j)]);
  }
  return wrong;
}

TEST_CASE(
    "products of operands rounded to bfloat16 have the bits of plain loops on every target, for every shape and layout",
    "[gemm]") {
  const ThreadsScope one(1);
  on_every_unit([] {
    int products = 0;
    for (const std::int64_t k : {1, 2, 3, 4, 31, 32, 33, 70, 511, 513}) {
      for (const std::int64_t m : {1, 3, 4, 5, 16, 31, 33, 70}) {
        const std::int64_t n = std::vector<std::int64_t>{1, 8, 15, 16, 17, 32, 33, 65}[index(products % 8)];
        const Bf16Problem problem(m, n, k);
        for (int turn = 0; turn < 4; ++turn) {
          INFO("m " << m << " n " << n << " k " << k << " variant " << (5 * products + 8 * turn) % 32);
          REQUIRE(differences(problem, variant((5 * products + 8 * turn) % 32)) == 0);
        }
        ++products;
      }
    }
    REQUIRE(products == 80);
  });
}

TEST_CASE("products of operands rounded to bfloat16 do not depend on the number of threads", "[gemm]") {
  on_every_unit([] {
    // The last three exceed what a task takes on AMX: of rows, of steps and of columns (gemm/plan_bounds.h).
    for (const GemmSizes& size : {GemmSizes{150, 90, 70},
                                  {1, 700, 300},
                                  {40, 70, 64},
                                  {70, 33, 1100},
                                  {490, 33, 520},
                                  {40, 20, 1600},
                                  {34, 1250, 40}}) {
      const Bf16Problem problem(size.m, size.n, size.k);
      with_every_team([&] {
        for (const int turn : {0, 2, 5, 9, 19, 24, 30}) {
          INFO("m " << size.m << " n " << size.n << " k " << size.k << " variant " << turn);
          REQUIRE(differences(problem, variant(turn)) == 0);
        }
      });
    }
  });
}

TEST_CASE("the items of a batch of rounded products have the bits of single products, also with many rows", "[gemm]") {
  // Each item has its own B, and a task takes all rows of an item: more than are packed at once (kMaxBf16PackedRows).
  constexpr std::int64_t kItems = 8, kRows = 600, kColumns = 65, kSteps = 20;
  const std::vector<float> a = numbers<float>(kItems * kRows * kSteps, 1),
                           b = numbers<float>(kItems * kSteps * kColumns, 2);
  on_every_unit([&] {
    for (const bool a_transposed : {false, true}) {
      std::vector<float> c(kItems * kRows * kColumns, kNaN<float>), wanted = c;
      Gemm<float> g{.m = kRows, .n = kColumns, .k = kSteps, .a = a.data()};
      g.lda = a_transposed ? kRows : kSteps;
      g.a_transposed = a_transposed;
      g.b = b.data();
      g.ldb = kColumns;
      g.ldc = kColumns;
      g.rounds_operands = true;
      g.stride_a = kRows * kSteps;
      g.stride_b = kSteps * kColumns;
      g.stride_c = kRows * kColumns;
      for (std::int64_t i = 0; i < kItems; ++i, g.a += g.stride_a, g.b += g.stride_b) {
        g.c = wanted.data() + i * g.stride_c;
        run(g);
      }
      g.a = a.data();
      g.b = b.data();
      g.c = c.data();
      g.batch = kItems;
      with_every_team([&] {
        std::ranges::fill(c, kNaN<float>);
        run(g);
        REQUIRE(equal_bits(c, wanted));
      });
    }
  });
}

TEST_CASE("a product of operands rounded to bfloat16 without steps is its bias", "[gemm]") {
  on_every_unit([] {
    const std::vector<float> bias = numbers<float>(40, 1);
    for (const bool a_transposed : {false, true}) {
      std::vector<float> c(70 * 40, kNaN<float>);
      Gemm<float> g{.m = 70, .n = 40, .k = 0, .lda = 70, .ldb = 40, .c = c.data(), .ldc = 40};
      g.a_transposed = a_transposed;
      g.bias = bias.data();
      g.rounds_operands = true;
      run(g);
      for (std::size_t i = 0; i < c.size(); ++i) REQUIRE(same_bits(c[i], bias[i % 40]));
    }
  });
}

/// x · 1 as a product: what x is rounded to.
std::vector<float> rounded(const std::vector<float>& x) {
  const auto m = static_cast<std::int64_t>(x.size());
  std::vector<float> y(x.size(), kNaN<float>);
  const float one = 1;
  run<float>({.m = m,
              .n = 1,
              .k = 1,
              .a = x.data(),
              .lda = 1,
              .b = &one,
              .ldb = 1,
              .c = y.data(),
              .ldc = 1,
              .rounds_operands = true});
  return y;
}

TEST_CASE("rounding to bfloat16: ties go to even numbers, subnormal numbers to 0, and NaN and infinity stay",
          "[gemm]") {
  const float infinity = std::numeric_limits<float>::infinity(), largest = std::numeric_limits<float>::max();
  const std::vector<std::pair<float, float>> cases = {
      {1.0F, 1.0F},           {1.00390625F, 1.0F},  {1.01171875F, 1.015625F}, {0x1.01002p0F, 1.0078125F},
      {-1.00390625F, -1.0F},  {largest, infinity},  {infinity, infinity},     {-infinity, -infinity},
      {0x1p-126F, 0x1p-126F}, {0x1.FFp-127F, 0.0F}, {0x1p-149F, 0.0F},        {3.3895314e38F, 3.3895314e38F}};
  std::vector<float> x;
  for (const auto& [from, to] : cases) x.push_back(from);
  x.push_back(kNaN<float>);
  x.push_back(std::bit_cast<float>(0x7FFFFFFFU));  // rounded like a number, this NaN would become -0
  on_every_unit([&] {
    const std::vector<float> y = rounded(x);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      INFO("x " << x[i]);
      REQUIRE(y[i] == cases[i].second);
    }
    for (std::size_t i = cases.size(); i < x.size(); ++i) REQUIRE(std::isnan(y[i]));
  });
}

TEST_CASE("products of tiny numbers of bfloat16 become 0 on every unit", "[gemm]") {
  Bf16Problem problem(17, 19, 40);
  // Products around the smallest normal number, 2^-126: some are below it, and sums of others are.
  for (std::size_t i = 0; i < problem.a.size(); ++i) problem.a[i] *= i % 3 == 0 ? 0x1p-66F : 0x1p-62F;
  for (std::size_t i = 0; i < problem.b.size(); ++i) problem.b[i] *= i % 5 == 0 ? 0x1p-60F : 0x1p-64F;
  problem.lay_out();
  for (float& x : problem.c) x *= 0x1p-126F;
  for (float& x : problem.bias) x *= 0x1p-125F;
  on_every_unit([&] {
    // Without fused multiply-adds, a product alone may become 0.
    if (target() == "sse4" || target() == "floor") return;
    for (const int turn : {0, 3, 8, 16, 24}) REQUIRE(differences(problem, variant(turn)) == 0);
  });
}

}  // namespace
}  // namespace maki::kernels
