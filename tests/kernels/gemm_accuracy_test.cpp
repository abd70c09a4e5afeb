// The error of products against sums in double, and where along K a product may be split.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "autograd/kernels/gemm/gemm.h"
#include "tests/catch.h"
#include "tests/kernels/gemm_case.h"

namespace maki::kernels {
namespace {

std::vector<float> normals(std::int64_t count, double mean, double deviation, std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  std::normal_distribution<double> draw(mean, deviation);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& x : values) x = static_cast<float>(draw(bits));
  return values;
}

/// A [m, k] and Bᵀ [n, k] of normal numbers, and their product in double.
struct LongProduct {
  LongProduct(std::int64_t k_, double mean, double deviation)
      : k(k_), a(normals(m * k, mean, deviation, 1)), bt(normals(n * k, mean, deviation, 2)) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t p = 0; p < k; ++p) sum += double{at(a, i * k + p)} * double{at(bt, j * k + p)};
        wanted.push_back(sum);
      }
    }
  }
  static float at(const std::vector<float>& x, std::int64_t i) { return x[static_cast<std::size_t>(i)]; }

  /// |C − wanted| / |wanted| in Frobenius norms, over the first `rows` rows.
  double error(std::int64_t rows, bool tiles) const {
    std::vector<float> c(static_cast<std::size_t>(rows * n));
    Gemm<float> g{.m = rows, .n = n, .k = k, .a = a.data(), .lda = k, .b = bt.data(), .ldb = k, .b_transposed = true};
    g.c = c.data();
    g.ldc = n;
    if (tiles) g = on_amx(g);
    Scratch<float> scratch(gemm_scratch_bytes(g));
    gemm(g, scratch.span());
    double off = 0, norm = 0;
    for (std::size_t i = 0; i < c.size(); ++i) {
      off += (double{c[i]} - wanted[i]) * (double{c[i]} - wanted[i]);
      norm += wanted[i] * wanted[i];
    }
    return std::sqrt(off / norm);
  }

  static constexpr std::int64_t m = 20, n = 40;
  std::int64_t k;
  std::vector<float> a, bt;
  std::vector<double> wanted;
};

TEST_CASE("gemm: long sums keep their precision at every K to 65,536", "[gemm]") {
  for (const double mean : {0.0, 10.0}) {
    for (const std::int64_t k : {500, 1000, 3000, 10000, 50257, 65536}) {
      const LongProduct product(k, mean, 1);
      on_every_target_with_amx([&] {
        INFO("mean " << mean << " K " << k);
        REQUIRE(product.error(8, false) < 6e-7);  // few rows, past which B is streamed
        REQUIRE(product.error(LongProduct::m, false) < 6e-7);
        REQUIRE(product.error(LongProduct::m, true) < 6e-7);
      });
    }
  }
}

TEST_CASE("gemm: a product split along K between two chains has the bits of the whole", "[gemm]") {
  const std::int64_t m = 20, n = 40, k = 2500;
  const std::vector<float> a = numbers<float>(m * k, 1), bt = numbers<float>(n * k, 2), c0 = numbers<float>(m * n, 3);
  on_every_target_with_amx([&] {
    for (const std::int64_t rows : {m, std::int64_t{3}}) {
      const auto add = [&](std::int64_t begin, std::int64_t end, int beta, std::vector<float>& c) {
        run<float>({.m = rows,
                    .n = n,
                    .k = end - begin,
                    .a = a.data() + begin,
                    .lda = k,
                    .b = bt.data() + begin,
                    .ldb = k,
                    .b_transposed = true,
                    .c = c.data(),
                    .ldc = n,
                    .beta = beta});
      };
      for (const int beta : {0, 1}) {
        std::vector<float> whole = c0, parts = c0;
        add(0, k, beta, whole);
        add(0, kGemmChainLength, beta, parts);
        add(kGemmChainLength, 3 * kGemmChainLength, 1, parts);
        add(3 * kGemmChainLength, k, 1, parts);
        REQUIRE(std::equal(whole.begin(), whole.end(), parts.begin(), same_bits<float>));
      }
    }
  });
}

TEST_CASE("gemm: on tiles products down to 1e-30 keep their precision", "[gemm]") {
  const AmxForTests amx;
  const std::vector<std::string> targets = available_targets();
  if (std::ranges::find(targets, "amx") == targets.end()) {
    WARN("skipped: neither tiles nor AVX-512 to emulate them");
    return;
  }
  force_target("amx");
  REQUIRE(LongProduct(1000, 0, 1e-15).error(LongProduct::m, true) < 6e-7);
  REQUIRE(LongProduct(1000, 0, 1e-17).error(LongProduct::m, true) < 1e-2);  // 1e-34: docs/decisions/016-amx.md
  REQUIRE(LongProduct(1000, 0, 1e15).error(LongProduct::m, true) < 6e-7);
  force_target("");
}

}  // namespace
}  // namespace maki::kernels
