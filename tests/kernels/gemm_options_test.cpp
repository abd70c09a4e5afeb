// GEMM's batches, activations, empty sizes, special values, and the arguments that it rejects.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/gemm/gemm.h"
#include "tests/catch.h"
#include "tests/kernels/gemm_case.h"
#include "tests/kernels/gemm_chain.h"

namespace maki::kernels {
namespace {

TEMPLATE_TEST_CASE("gemm: a batch is its products one by one", "[gemm]", float, double) {
  using T = TestType;
  struct Case {
    std::int64_t batch, m, n, k;
  };
  on_every_target_with_amx([] {
    for (const Case& s : {Case{3, 50, 60, 70}, Case{20, 9, 40, 33}, Case{1, 5, 6, 7}, Case{40, 20, 16, 0}}) {
      const std::vector<T> a = numbers<T>(s.batch * s.m * s.k, 1), b = numbers<T>(s.batch * s.k * s.n, 2),
                           bias = numbers<T>(s.n, 3), c0 = numbers<T>(s.batch * s.m * s.n, 4);
      for (int index = 0; index < 32; ++index) {
        const Variant v = variant(index);
        Gemm<T> g{.m = s.m, .n = s.n, .k = s.k};
        g.a = a.data();
        g.lda = v.a_transposed ? s.m : s.k;
        g.a_transposed = v.a_transposed;
        g.b = b.data();
        g.ldb = v.b_transposed ? s.k : s.n;
        g.b_transposed = v.b_transposed;
        g.ldc = s.n;
        g.beta = v.beta;
        g.bias = bias.data();
        const std::int64_t stride_a = v.with_bias ? 0 : s.m * s.k, stride_b = v.packed ? 0 : s.k * s.n;
        std::vector<T> one_by_one = c0;
        for (std::int64_t item = 0; item < s.batch; ++item) {
          Gemm<T> single = g;
          single.a += item * stride_a;
          single.b += item * stride_b;
          single.c = one_by_one.data() + item * s.m * s.n;
          run(single);
        }
        with_every_team([&] {
          std::vector<T> together = c0;
          Gemm<T> batched = g;
          batched.c = together.data();
          batched.batch = s.batch;
          batched.stride_a = stride_a;
          batched.stride_b = stride_b;
          batched.stride_c = s.m * s.n;
          run(batched);
          INFO("batch " << s.batch << " variant " << index);
          REQUIRE(std::equal(together.begin(), together.end(), one_by_one.begin(), same_bits<T>));
        });
      }
    }
  });
}

TEMPLATE_TEST_CASE("gemm: a fused activation has the bits of the composed one", "[gemm]", float, double) {
  using T = TestType;
  on_every_target_with_amx([] {
    struct Case {
      std::int64_t m, n;
      bool b_transposed;
    };
    const std::int64_t k = 530, ldc = 75;
    for (const auto& [m, n, b_transposed] :
         {Case{37, 1, false}, {37, 16, false}, {37, 33, false}, {37, 70, true}, {1, 70, true}, {3, 64, true}}) {
      const std::vector<T> a = numbers<T>(m * k, 1), b = numbers<T>(k * n, 2), bias = numbers<T>(n, 3);
      std::vector<T> plain(static_cast<std::size_t>(m * ldc), T(3)), fused = plain, kept = plain;
      Gemm<T> g{
          .m = m, .n = n, .k = k, .a = a.data(), .lda = k, .b = b.data(), .ldb = n, .c = plain.data(), .ldc = ldc};
      g.bias = bias.data();
      g.b_transposed = b_transposed;
      if (b_transposed) g.ldb = k;
      run(g);
      for (const GemmActivation activation : {GemmActivation::gelu, GemmActivation::gelu_tanh}) {
        const UnaryOp f = activation == GemmActivation::gelu ? UnaryOp::gelu : UnaryOp::gelu_tanh;
        g.c = fused.data();
        g.activation = activation;
        g.derivative = nullptr;
        run(g);
        const std::vector<T> without = fused;
        g.derivative = kept.data();
        run(g);
        std::vector<T> composed = plain, derivative = plain;
        const std::vector<T> ones(static_cast<std::size_t>(n), T(1));
        for (std::int64_t i = 0; i < m; ++i) {
          T* row = &composed[static_cast<std::size_t>(i * ldc)];
          T* slope = &derivative[static_cast<std::size_t>(i * ldc)];
          unary_forward(f, n, row, row);
          unary_backward(f, n, slope, ones.data(), Sink<T>{slope, false});
        }
        INFO("m " << m << " n " << n);
        REQUIRE(std::equal(kept.begin(), kept.end(), derivative.begin(), same_bits<T>));
        REQUIRE(std::equal(without.begin(), without.end(), composed.begin(), same_bits<T>));
        REQUIRE(std::equal(fused.begin(), fused.end(), composed.begin(), same_bits<T>));
        REQUIRE_FALSE(fused == plain);
      }
    }
  });
}

TEMPLATE_TEST_CASE("gemm: empty sizes and an empty chain", "[gemm]", float, double) {
  using T = TestType;
  std::vector<T> bias = {T(1), T(2), T(3)};
  const auto filled = [] { return std::vector<T>(6, T(7)); };
  std::vector<T> c = filled();
  run<T>({.m = 0, .n = 3, .k = 2, .lda = 2, .ldb = 3, .c = c.data(), .ldc = 3});
  run<T>({.m = 2, .n = 0, .k = 2, .lda = 2, .ldb = 3, .c = c.data(), .ldc = 3});
  run<T>({.m = 2, .n = 3, .k = 2, .lda = 2, .ldb = 3, .c = c.data(), .ldc = 3, .batch = 0});
  REQUIRE(c == filled());
  run<T>({.m = 2, .n = 3, .k = 0, .ldb = 3, .c = c.data(), .ldc = 3, .beta = 1});
  REQUIRE(c == filled());
  run<T>({.m = 2, .n = 3, .k = 0, .ldb = 3, .c = c.data(), .ldc = 3, .beta = 0});
  REQUIRE(c == std::vector<T>(6, T(0)));
  run<T>({.m = 2, .n = 3, .k = 0, .ldb = 3, .c = c.data(), .ldc = 3, .beta = 1, .bias = bias.data()});
  REQUIRE(c == std::vector<T>{1, 2, 3, 1, 2, 3});
}

TEMPLATE_TEST_CASE("gemm: NaN and Inf propagate as in the chain", "[gemm]", float, double) {
  using T = TestType;
  const T inf = std::numeric_limits<T>::infinity();
  on_every_target_with_amx([&] {
    std::vector<T> a = {inf, 1, 0, kNaN<T>, 1, 2}, b = {0, 1, 1, 1, 2, 2}, c(4, 5);  // [2, 3] x [3, 2]
    run<T>({.m = 2, .n = 2, .k = 3, .a = a.data(), .lda = 3, .b = b.data(), .ldb = 2, .c = c.data(), .ldc = 2});
    REQUIRE(std::isnan(c[0]));  // Inf * 0
    if (rounding<T>() == Rounding::tiles) {
      REQUIRE(std::isnan(c[1]));  // the pieces of Inf are Inf and NaN
    } else {
      REQUIRE(c[1] == inf);
    }
    REQUIRE(std::isnan(c[2]));
    REQUIRE(std::isnan(c[3]));
  });
}

TEST_CASE("gemm: recorded products that are large, or parts of large ones, run on AMX, others as on AVX3", "[gemm]") {
  const AmxForTests amx;
  const std::vector<std::string> targets = available_targets();
  if (std::ranges::find(targets, "amx") == targets.end()) {
    WARN("skipped: neither tiles nor AVX-512 to emulate them");
    return;
  }
  const std::int64_t k = 300;
  const std::vector<float> a = numbers<float>(104 * k, 1), b = numbers<float>(k * 130, 2);
  const auto product = [&](const char* target, std::int64_t m, bool recorded, const GemmSizes& whole = {}) {
    force_target(target);
    std::vector<float> c(static_cast<std::size_t>(m * 130));
    Gemm<float> g{
        .m = m, .n = 130, .k = k, .a = a.data(), .lda = k, .b = b.data(), .ldb = 130, .c = c.data(), .ldc = 130};
    g.recorded = recorded;
    g.whole = whole;
    REQUIRE(runs_on_amx(g) == (std::string(target) == "amx" && recorded && (whole.m > 0 ? whole.m : m) >= 96));
    Scratch<float> scratch(gemm_scratch_bytes(g));
    gemm(g, scratch.span());
    force_target("");
    return c;
  };
  REQUIRE(product("amx", 104, false) == product("avx3", 104, false));
  REQUIRE(product("avx3", 104, true) == product("avx3", 104, false));
  REQUIRE_FALSE(product("amx", 104, true) == product("amx", 104, false));
  REQUIRE(product("amx", 95, true) == product("avx3", 95, false));
  REQUIRE(product("amx", 104, true, {95, 130, k}) == product("avx3", 104, false));
  const std::vector<float> large = product("amx", 104, true), part = product("amx", 95, true, {104, 130, k});
  REQUIRE(std::equal(part.begin(), part.end(), large.begin()));
  REQUIRE_FALSE(runs_on_amx(on_amx(Gemm<double>{.m = 64, .n = 64, .k = 64})));
}

template <class Body>
std::string sentence_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("gemm: arguments that are rejected, and the messages", "[gemm]") {
  std::vector<float> x(100);
  const Gemm<float> good{
      .m = 5, .n = 4, .k = 3, .a = x.data(), .lda = 3, .b = x.data(), .ldb = 4, .c = x.data(), .ldc = 4};
  const auto with = [&](auto change) {
    Gemm<float> g = good;
    change(g);
    return sentence_of([&] { run(g); });
  };
  REQUIRE(with([](Gemm<float>& g) { g.beta = 2; }) == "gemm: beta must be 0 or 1; got 2");
  REQUIRE(with([](Gemm<float>& g) { g.lda = 2; }) == "gemm: lda must be at least 3; got 2");
  REQUIRE(with([](Gemm<float>& g) { g.ldb = 3; }) == "gemm: ldb must be at least 4; got 3");
  REQUIRE(with([](Gemm<float>& g) { g.ldc = 3; }) == "gemm: ldc must be at least 4; got 3");
  REQUIRE(with([](Gemm<float>& g) { g.m = -1; }).find("must not be negative; got m -1") != std::string::npos);
  REQUIRE(with([](Gemm<float>& g) { g.n = -1; }) == "gemm: sizes must not be negative; got m 5, n -1, k 3, batch 1");
  REQUIRE(with([](Gemm<float>& g) { g.batch = -1; }).find("must not be negative; got m 5") != std::string::npos);
  REQUIRE(with([&](Gemm<float>& g) { g.derivative = x.data(); }) ==
          "gemm: a derivative needs an activation; got GemmActivation::none");
  REQUIRE(with([](Gemm<float>& g) { g.upper = true; }) ==
          "gemm: only a square product without activation and factor has an upper part; got m 5, n 4");
  REQUIRE(with([](Gemm<float>& g) { g.batch = 2; }).find("overlap") != std::string::npos);
  const auto in_batch = [&](std::int64_t stride_c) {
    return with([&](Gemm<float>& g) {
      g.m = 3;
      g.ldc = 6;
      g.batch = 2;
      g.c += stride_c < 0 ? 50 : 0;
      g.stride_c = stride_c;
    });
  };
  // An item covers two rows of 6 elements and the 4 elements of its last row.
  REQUIRE(in_batch(15) ==
          "gemm: the items of C must not overlap: |stride_c| must be at least (m - 1) ldc + n = 16; got 15");
  REQUIRE(in_batch(4).find("got 4") != std::string::npos);  // beside each other, but in rows of 6 elements
  REQUIRE(in_batch(-15).find("got -15") != std::string::npos);
  REQUIRE(in_batch(16).empty());
  REQUIRE(in_batch(-16).empty());
  Scratch<float> small(0);
  REQUIRE(sentence_of([&] { gemm(good, small.span()); }).find("bytes of scratch; got 0") != std::string::npos);
  Scratch<float> shifted(gemm_scratch_bytes(good) + 64);
  REQUIRE(sentence_of([&] {
            gemm(good, shifted.span().subspan(4));
          }).find("gemm: scratch must be aligned to 64 bytes; got address 0x") == 0);
}

TEST_CASE("pack_b: arguments that are rejected, and the messages", "[gemm]") {
  std::vector<float> x(100);
  const auto refused = [&](const Gemm<float>& g) { return sentence_of([&] { pack_b(g, x.data()); }); };
  REQUIRE(refused({.n = -1, .k = 3}) == "pack_b: sizes must not be negative; got n -1, k 3");
  REQUIRE(refused({.n = 4, .k = -3, .ldb = 4}) == "pack_b: sizes must not be negative; got n 4, k -3");
  REQUIRE(refused({.n = 4, .k = 3, .b = x.data(), .ldb = 3}) == "pack_b: ldb must be at least 4; got 3");
  REQUIRE(refused({.n = 4, .k = 3, .b = x.data(), .ldb = 2, .b_transposed = true}) ==
          "pack_b: ldb must be at least 3; got 2");
}

}  // namespace
}  // namespace maki::kernels
