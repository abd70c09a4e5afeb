// Matrices of 8-bit numbers: how floats are rounded to them, and products with them, bit for bit those with the floats
// that they stand for.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/kernels/gemm/int8.h"
#include "tests/catch.h"
#include "tests/kernels/gemm_case.h"

namespace maki::kernels {
namespace {

/// A matrix [out, in] of random floats, rounded.
struct Rounded {
  Rounded(std::int64_t out, std::int64_t in) : exact(numbers<float>(out * in, 7)), matrix{.out = out, .in = in} {
    for (std::int64_t i = 0; i < std::ssize(exact); i += 5) exact[static_cast<std::size_t>(i)] *= 1e-3F;
    round();
  }
  bool round() {
    blocks.assign(static_cast<std::size_t>(matrix.panels() * matrix.groups()), {});
    matrix.blocks = blocks.data();
    return round_to_int8(exact.data(), matrix, blocks.data());
  }
  const Int8Block& block(std::int64_t row, std::int64_t step) const {
    return matrix.panel(row / Int8Block::kRows)[step / Int8Block::kSteps];
  }
  float at(std::int64_t row, std::int64_t step) const { return matrix.at(row, step); }
  std::vector<float> floats() const {
    std::vector<float> all;
    for (std::int64_t row = 0; row < matrix.out; ++row) {
      for (std::int64_t step = 0; step < matrix.in; ++step) all.push_back(at(row, step));
    }
    return all;
  }
  std::vector<float> exact;
  Int8Matrix matrix;
  std::vector<Int8Block> blocks;
};

struct Options {
  int beta = 0;
  bool bias = false;
  GemmActivation activation = GemmActivation::none;
};

/// The product of m rows with B, in rows that are three elements longer than n. Those of A are two elements longer than
/// k; these are NaN.
std::vector<float> product(const Rounded& rounded, const GemmOperand<float>& b, std::int64_t m, const Options& o) {
  const std::int64_t n = rounded.matrix.out, k = rounded.matrix.in;
  const std::vector<float> bias = numbers<float>(n, 3);
  std::vector<float> a = numbers<float>(m * (k + 2), 1), c = numbers<float>(m * (n + 3), 4);
  for (std::int64_t i = 0; i < m; ++i) std::fill_n(&a[static_cast<std::size_t>(i * (k + 2) + k)], 2, kNaN<float>);
  Gemm<float> g{.m = m, .n = n, .k = k, .a = a.data(), .lda = k + 2, .b = b, .ldb = k, .b_transposed = true};
  g.c = c.data();
  g.ldc = n + 3;
  g.beta = o.beta;
  g.bias = o.bias ? bias.data() : nullptr;
  g.activation = o.activation;
  Scratch<float> scratch(gemm_scratch_bytes(g));
  gemm(g, scratch.span());
  REQUIRE(scratch.guard_is_intact());
  return c;
}

void require_same_product(const Rounded& rounded, std::int64_t m, const Options& o) {
  const std::vector<float> floats = rounded.floats();
  INFO("m " << m << " n " << rounded.matrix.out << " k " << rounded.matrix.in << " beta " << o.beta);
  REQUIRE(equal_bits(product(rounded, &rounded.matrix, m, o), product(rounded, floats.data(), m, o)));
}

}  // namespace

TEST_CASE("a number becomes the nearest multiple of a 127th of the largest in its block of a row, on every target") {
  on_every_target_with_amx([] {
    for (const auto& [out, in] : {std::pair{1, 1}, {16, 64}, {17, 65}, {40, 200}}) {
      const Rounded rounded(out, in);
      for (std::int64_t row = 0; row < out; ++row) {
        for (std::int64_t begin = 0; begin < in; begin += Int8Block::kSteps) {
          const std::int64_t end = std::min<std::int64_t>(in, begin + Int8Block::kSteps);
          const float* const x = rounded.exact.data() + row * in;
          float most = 0;
          for (std::int64_t p = begin; p < end; ++p) most = std::max(most, std::abs(x[p]));
          const float scale = most / 127, factor = 127 / most;
          REQUIRE(same_bits(rounded.block(row, begin).scales[row % Int8Block::kRows], scale));
          for (std::int64_t p = begin; p < end; ++p) {
            REQUIRE(rounded.at(row, p) == scale * std::nearbyint(x[p] * factor));
            REQUIRE(std::abs(rounded.at(row, p) - x[p]) <= scale * 0.50001F);
          }
        }
      }
      REQUIRE(rounded.at(out - 1, in - 1) != 0);
    }
  });
}

TEST_CASE("blocks of zeros or of tiny numbers become zeros, and numbers that are not finite are refused") {
  on_every_target_with_amx([] {
    Rounded rounded(20, 70);
    std::ranges::fill(rounded.exact, 1e-35F);
    rounded.exact[3] = 0.5F;
    REQUIRE(rounded.round());
    const std::vector<float> floats = rounded.floats();
    REQUIRE(std::ranges::count_if(floats, [](float x) { return x != 0; }) == 1);
    REQUIRE(same_bits(floats[3], 0.5F / 127 * 127));
    for (const float bad :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), kNaN<float>}) {
      for (const std::size_t at : {std::size_t{0}, std::size_t{69}, rounded.exact.size() - 1}) {
        std::ranges::fill(rounded.exact, 1.0F);
        rounded.exact[at] = bad;
        REQUIRE_FALSE(rounded.round());
      }
    }
  });
}

TEST_CASE("a product with 8-bit numbers has the bits of the product with their floats") {
  on_every_target_with_amx([] {
    for (const std::int64_t n : {1, 15, 16, 17, 33, 64, 65, 130}) {
      for (const std::int64_t k : {1, 63, 64, 65, 512, 513, 700}) {
        const Rounded rounded(n, k);
        for (const std::int64_t m : {1, 2, 3, 4, 5, 14, 15, 32, 33, 40}) require_same_product(rounded, m, {});
      }
    }
  });
}

TEST_CASE("a product with 8-bit numbers adds to C, adds a bias and applies activations, at any number of threads") {
  on_every_target_with_amx([] {
    const Rounded rounded(150, 1100);
    with_every_team([&] {
      for (const std::int64_t m : {1, 7, 50}) {
        for (const GemmActivation activation :
             {GemmActivation::none, GemmActivation::gelu, GemmActivation::gelu_tanh}) {
          require_same_product(rounded, m, {.beta = 0, .bias = true, .activation = activation});
          require_same_product(rounded, m, {.beta = 1, .bias = false, .activation = activation});
        }
      }
    });
  });
}

TEST_CASE("a product of many columns unpacks 8-bit numbers slab by slab") {
  const Rounded rounded(2100, 1025);  // a slab has 2^20 numbers
  for (const int threads : {1, 3}) {
    const ThreadsScope team(threads);
    require_same_product(rounded, 33, {.beta = 0, .bias = true, .activation = GemmActivation::gelu});
  }
}

TEST_CASE("products that cannot have 8-bit numbers are refused, and empty ones compute nothing") {
  const Rounded rounded(20, 30);
  const std::vector<float> a(40 * 30, 1.0F);
  std::vector<float> c(40 * 20, 2.0F), other(40 * 20);
  const auto refused = [&](const auto& change, const char* message) {
    Gemm<float> g{.m = 40, .n = 20, .k = 30, .a = a.data(), .lda = 40, .b = &rounded.matrix, .b_transposed = true};
    g.c = c.data();
    g.ldc = 20;
    change(g);
    Scratch<float> scratch(1 << 20);
    REQUIRE_THROWS_WITH(gemm(g, scratch.span()), ContainsSubstring(message));
    REQUIRE(std::ranges::all_of(c, [](float x) { return x == 2; }));
  };
  refused([](Gemm<float>& g) { g.n = 19; }, "must be [n, k] = [19, 30] with k at least 1; got [20, 30]");
  const Rounded empty(20, 0);
  refused([&](Gemm<float>& g) { g.k = 0, g.b = &empty.matrix; }, "with k at least 1");
  for (const auto& change : std::vector<void (*)(Gemm<float>&)>{
           [](Gemm<float>& g) { g.recorded = true; }, [](Gemm<float>& g) { g.b_transposed = false; },
           [](Gemm<float>& g) { g.a_transposed = true; }, [](Gemm<float>& g) { g.rounds_operands = true; },
           [](Gemm<float>& g) { g.batch = 2, g.stride_c = 800; }}) {
    refused(change, "8-bit numbers need a product of one item");
  }
  refused([&](Gemm<float>& g) { g.factor = other.data(); }, "8-bit numbers need a product of one item");
  refused([&](Gemm<float>& g) { g.activation = GemmActivation::gelu, g.derivative = other.data(); }, "derivative");
  Gemm<double> doubles{.m = 1, .n = 20, .k = 30, .lda = 30, .b = &rounded.matrix, .b_transposed = true};
  doubles.ldc = 20;
  REQUIRE_THROWS_WITH(gemm(doubles, {}), ContainsSubstring("need a product of floats"));
  Gemm<float> small{.m = 40, .n = 20, .k = 30, .a = a.data(), .lda = 30, .b = &rounded.matrix, .b_transposed = true};
  small.c = c.data();
  small.ldc = 20;
  Scratch<float> scratch(gemm_scratch_bytes(small) - 64);
  REQUIRE_THROWS_WITH(gemm(small, scratch.span()), ContainsSubstring("bytes of scratch"));
  small.m = 0;
  gemm(small, {});
  REQUIRE(std::ranges::all_of(c, [](float x) { return x == 2; }));
}

}  // namespace maki::kernels
