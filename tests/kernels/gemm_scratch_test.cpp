// How much scratch GEMM needs and which path it takes. Both follow from its plan, so they can be tested for any number
// of threads.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "autograd/kernels/gemm/gemm.h"
#include "tests/catch.h"
#include "tests/kernels/gemm_case.h"
#include "tests/kernels/gemm_chain.h"

namespace maki::kernels {
namespace {

/// The largest scratch that any of many products needs, in bytes.
template <class T>
std::int64_t max_scratch(bool rounds_operands) {
  std::int64_t max = 0;
  for (const std::int64_t m : {1, 15, 64, 100, 384, 500, 768, 1000, 4096, 50257}) {
    for (const std::int64_t n : {1, 15, 64, 100, 384, 500, 768, 1000, 4096, 50257}) {
      for (const std::int64_t k : {1, 64, 300, 512, 768, 1000, 3072, 16384, 65536}) {
        for (const std::int64_t batch : {1, 8, 1000}) {
          for (int index = 0; index < 16; ++index) {
            Gemm<T> g{.m = m, .n = n, .k = k, .a_transposed = (index & 1) != 0, .b_transposed = (index & 2) != 0};
            if ((index & 4) != 0) g = on_amx(g);
            g.rounds_operands = rounds_operands;
            g.batch = batch;
            g.stride_a = m * k;
            g.stride_b = (index & 8) != 0 ? 0 : k * n;
            g.stride_c = m * n;
            max = std::max(max, gemm_scratch_bytes(g));
          }
        }
      }
    }
  }
  return max;
}

TEMPLATE_TEST_CASE("gemm: scratch is bounded for every shape, even with many threads", "[gemm]", float, double) {
  on_every_target_with_amx([] {
    for (const int threads : {1, 2, 16, 64}) {
      const ThreadsScope team(threads);
      INFO("threads " << threads);
      // The operands packed for all threads, and the buffers of each thread.
      REQUIRE(max_scratch<TestType>(false) <= (threads <= 2 ? std::int64_t{20} << 20 : std::int64_t{64} << 20));
      // Operands that are rounded for tiles are packed up to 1536 steps deep.
      if (sizeof(TestType) == 4) REQUIRE(max_scratch<TestType>(true) <= (std::int64_t{20} + 2 * threads) << 20);
    }
  });
}

TEST_CASE("gemm: a small batch with a long K packs no more than a chain at a time", "[gemm]") {
  on_every_target_with_amx([] {
    const ThreadsScope team(64);
    Gemm<float> g{.m = 64, .n = 64, .k = 65536, .lda = 65536, .ldb = 64, .ldc = 64};
    g = on_amx(g);
    g.batch = 8;
    g.stride_a = g.stride_b = 64 * 65536;
    g.stride_c = 64 * 64;
    REQUIRE(gemm_scratch_bytes(g) <= std::int64_t{20} << 20);  // it was 2.3 GiB when a thread packed the whole of K
  });
}

TEST_CASE("gemm: AMX pays only for products of which no size is small", "[gemm]") {
  for (const std::int64_t large : {128, 768, 50257}) {
    REQUIRE(amx_pays({large, 129, 128}));
    REQUIRE(amx_pays({96, large, 128}));
    REQUIRE_FALSE(amx_pays({95, large, 768}));
    REQUIRE_FALSE(amx_pays({large, 768, 95}));
    REQUIRE_FALSE(amx_pays({96, 127, large}));
  }
}

/// Compares a sample of the elements of a product with their chains. The plan depends on the size of the team.
void require_chains(std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::vector<float> a = numbers<float>(m * k, 1), bt = numbers<float>(n * k, 2), bias = numbers<float>(n, 3);
  std::vector<float> c(static_cast<std::size_t>(m * n), kNaN<float>);
  Gemm<float> g{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .b = bt.data(), .ldb = k, .b_transposed = true};
  g.c = c.data();
  g.ldc = n;
  g.bias = bias.data();
  run(g);
  std::int64_t wrong = 0, compared = 0;
  for (std::int64_t i = 0; i < m; i += 37) {
    for (std::int64_t j = i % 41; j < n; j += 41, ++compared) {
      const float wanted = element_of(a.data() + i * k, bt.data() + j * k, k, 0.0F, bias[static_cast<std::size_t>(j)],
                                      rounding<float>());
      wrong += !same_bits(c[static_cast<std::size_t>(i * n + j)], wanted);
    }
  }
  REQUIRE(compared > 20);
  REQUIRE(wrong == 0);
  REQUIRE(std::none_of(c.begin(), c.end(), [](float x) { return std::isnan(x); }));
}

TEST_CASE("gemm: operands in several pieces, packed by each thread or for all, on tiles as well", "[gemm]") {
  struct Size {
    std::int64_t m, n, k;
    int threads;
  };
  on_every_target_with_amx([] {
    // In the first case each of two threads packs pieces of B for itself, in the second pieces of A. In the third 64
    // threads pack B together.
    for (const Size& size : {Size{500, 450, 1100, 2}, Size{380, 600, 1100, 2}, Size{200, 300, 1100, 64}}) {
      const ThreadsScope team(size.threads);
      INFO("m " << size.m << " n " << size.n << " k " << size.k << " threads " << size.threads);
      require_chains(size.m, size.n, size.k);
    }
  });
}

}  // namespace
}  // namespace maki::kernels
