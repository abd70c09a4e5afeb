// Recorded products of many sizes, single and batched, as ops run them ("maki") and on the vector units alone
// ("vector"): where ops choose AMX tiles, they must not be slower. On a CPU without AMX, the two are the same.
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <memory>
#include <span>

#include "autograd/core/check.h"
#include "autograd/core/philox.h"
#include "autograd/kernels/gemm/gemm.h"
#include "autograd/tensor.h"
#include "bench/report.h"

namespace maki::bench {
namespace {

struct Sizes {
  std::int64_t batch, m, n, k;
};
constexpr Sizes kSizes[] = {{1, 31, 768, 768},  {1, 32, 64, 64},    {1, 32, 768, 768},    {1, 48, 96, 4096},
                            {1, 64, 64, 64},    {1, 64, 64, 768},   {1, 100, 65, 128},    {1, 256, 256, 256},
                            {1, 256, 768, 768}, {1, 768, 128, 512}, {1, 2048, 2048, 512}, {4, 512, 512, 512},
                            {8, 64, 64, 512},   {8, 64, 64, 65536}, {8, 128, 128, 4096},  {64, 32, 32, 32},
                            {64, 64, 64, 64},   {96, 256, 64, 256}, {96, 256, 256, 64},   {256, 16, 16, 128}};
constexpr const char* kLayouts[] = {"NN", "NT", "TN"};
static_assert(std::size(kSizes) * std::size(kLayouts) == 60);

Tensor random_numbers(std::int64_t count, std::uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::test, "tiles");
  Tensor x = empty({count}, DType::float32);
  std::uint64_t i = 0;
  for (float& value : x.values<float>()) {
    value = static_cast<float>(static_cast<double>(stream.bits(i++)) * 0x1p-31 - 1);
  }
  return x;
}

struct BatchedProduct {
  BatchedProduct(const Sizes& s, const char* layout, bool chosen)
      : a(random_numbers(s.batch * s.m * s.k, 1)),
        b(random_numbers(s.batch * s.k * s.n, 2)),
        c(empty({s.batch * s.m * s.n}, DType::float32)) {
    g = {.m = s.m, .n = s.n, .k = s.k, .a = a.data<float>()};
    g.a_transposed = layout[0] == 'T';
    g.lda = g.a_transposed ? s.m : s.k;
    g.b = b.data<float>();
    g.b_transposed = layout[1] == 'T';
    g.ldb = g.b_transposed ? s.k : s.n;
    g.c = c.data<float>();
    g.ldc = s.n;
    g.batch = s.batch;
    g.stride_a = s.m * s.k;
    g.stride_b = s.k * s.n;
    g.stride_c = s.m * s.n;
    g.recorded = chosen;
    scratch_bytes = kernels::gemm_scratch_bytes(g);
    scratch = Storage(scratch_bytes);
  }
  void run() { kernels::gemm(g, std::span(scratch.data(), static_cast<std::size_t>(scratch_bytes))); }

  /// Compares the corners of the first and the last item with sums in double.
  void verify() const {
    for (const std::int64_t item : {std::int64_t{0}, g.batch - 1}) {
      for (const std::int64_t i : {std::int64_t{0}, g.m - 1}) {
        for (const std::int64_t j : {std::int64_t{0}, g.n - 1}) verify_entry(item, i, j);
      }
    }
  }
  void verify_entry(std::int64_t item, std::int64_t i, std::int64_t j) const {
    double sum = 0, magnitude = 0;
    for (std::int64_t p = 0; p < g.k; ++p) {
      const double x = g.a.values[item * g.stride_a + (g.a_transposed ? p * g.lda + i : i * g.lda + p)];
      const double y = g.b.values[item * g.stride_b + (g.b_transposed ? j * g.ldb + p : p * g.ldb + j)];
      sum += x * y;
      magnitude += std::abs(x * y);
    }
    const double got = g.c[item * g.stride_c + i * g.ldc + j];
    check<std::logic_error>(std::abs(got - sum) <= 1e-6 * magnitude,
                            "tiles: got {:.9g} in item {}, row {}, column {} of a product; expected {:.9g}", got, item,
                            i, j, sum);
  }

  Tensor a, b, c;
  kernels::Gemm<float> g;
  Storage scratch;
  std::int64_t scratch_bytes = 0;
};

}  // namespace

void add_tile_benchmarks() {
  for (const Sizes& s : kSizes) {
    for (const char* const layout : kLayouts) {
      for (const bool chosen : {true, false}) {
        const std::string name =
            fmt::format("tiles/{}/{}x{},{},{}/{}", chosen ? "maki" : "vector", s.batch, s.m, s.n, s.k, layout);
        add(name, [s, layout, chosen] {
          const auto product = std::make_shared<BatchedProduct>(s, layout, chosen);
          product->run();
          product->verify();
          return Prepared{[product] { product->run(); }, 2.0 * static_cast<double>(s.batch * s.m * s.n * s.k)};
        });
      }
    }
  }
}

}  // namespace maki::bench
