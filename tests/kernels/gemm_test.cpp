// GEMM against the plain chains of tests/kernels/gemm_chain.h, bit for bit, on every target, in every layout and with
// every number of threads.
#include "autograd/kernels/gemm/gemm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/catch.h"
#include "tests/kernels/gemm_case.h"
#include "tests/kernels/gemm_chain.h"

namespace maki::kernels {
namespace {

/// One problem: op(A) [m, k] and op(B) [k, n] in both layouts, C and bias, and the chains of all elements. A chain does
/// not depend on m and n, so every smaller product is compared with the upper left corner of this one. Rows of k steps
/// have a margin.
template <class T>
struct Problem {
  Problem(std::int64_t m_, std::int64_t n_, std::int64_t k_) : m(m_), n(n_), k(k_) {
    a = numbers<T>(m * k, 1);
    b = numbers<T>(k * n, 2);
    c = numbers<T>(m * n, 3);
    bias = numbers<T>(n, 4);
    at.resize(a.size());
    bt.resize(b.size());
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t p = 0; p < k; ++p) at[index(p * m + i)] = a[index(i * k + p)];
    for (std::int64_t p = 0; p < k; ++p)
      for (std::int64_t j = 0; j < n; ++j) bt[index(j * k + p)] = b[index(p * n + j)];
    wide_a = with_margin(a, m, k);
    wide_bt = with_margin(bt, n, k);
    for (const int beta : {0, 1}) {
      for (const int biased : {0, 1}) {
        std::vector<T>& wanted = chains[beta][biased];
        wanted.resize(c.size());
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j) wanted[index(i * n + j)] = element(i, j, beta, biased);
      }
    }
  }
  T element(std::int64_t i, std::int64_t j, int beta, int biased) const {
    return element_of(a.data() + i * k, bt.data() + j * k, k, beta == 1 ? c[index(i * n + j)] : T{0},
                      biased == 1 ? bias[index(j)] : T{0}, rounding<T>());
  }
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

  std::int64_t m, n, k;
  std::vector<T> a, wide_a, at, b, bt, wide_bt, c, bias, chains[2][2];
};

/// Computes the upper left [m, n] of a problem and returns the number of elements with wrong bits, the margin included.
template <class T>
std::int64_t differences(const Problem<T>& problem, std::int64_t m, std::int64_t n, const Variant& v) {
  const auto index = Problem<T>::index;
  const std::int64_t ldc = n + kMarginColumns;
  std::vector<T> c(index(m * ldc), kNaN<T>);
  if (v.beta == 1) {
    for (std::int64_t i = 0; i < m; ++i) std::copy_n(&problem.c[index(i * problem.n)], n, &c[index(i * ldc)]);
  }
  Gemm<T> g{.m = m, .n = n, .k = problem.k};
  g.a = v.a_transposed ? problem.at.data() : problem.wide_a.data();
  g.lda = v.a_transposed ? problem.m : problem.k + kMarginColumns;
  g.a_transposed = v.a_transposed;
  g.b = v.b_transposed ? problem.wide_bt.data() : problem.b.data();
  g.ldb = v.b_transposed ? problem.k + kMarginColumns : problem.n;
  g.b_transposed = v.b_transposed;
  g.c = c.data();
  g.ldc = ldc;
  g.beta = v.beta;
  g.bias = v.with_bias ? problem.bias.data() : nullptr;
  Scratch<T> packed(v.packed ? packed_size(on_amx(g)) * std::int64_t{sizeof(T)} : 0);
  if (v.packed) {
    pack_b(on_amx(g), packed.data());
    REQUIRE(packed.guard_is_intact());
    g.b = {};
    g.b_packed = packed.data();
  }
  run(g);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < ldc; ++j) {
      const T got = c[index(i * ldc + j)];
      if (j >= n) {
        wrong += !std::isnan(got);
        continue;
      }
      wrong += !same_bits(got, problem.chains[v.beta][v.with_bias ? 1 : 0][index(i * problem.n + j)]);
    }
  }
  return wrong;
}

TEMPLATE_TEST_CASE("gemm: every element has the bits of its chain, for every number of rows and layout", "[gemm]",
                   float, double) {
  const ThreadsScope one(1);
  on_every_target_with_amx([] {
    std::int64_t products = 0;
    for (const std::int64_t k : {0, 1, 2, 3, 7, 16, 33, 130}) {
      const Problem<TestType> problem(40, 70, k);
      for (std::int64_t m = 1; m <= 40; ++m) {
        int turn = static_cast<int>(m + 5 * k);
        for (const std::int64_t n : {1, 2, 5, 8, 13, 16, 17, 31, 32, 33, 64, 65, 70}) {
          const Variant v = variant(turn++ % 32);
          INFO("m " << m << " n " << n << " k " << k << " variant " << turn);
          REQUIRE(differences(problem, m, n, v) == 0);
          ++products;
        }
      }
    }
    REQUIRE(products == 8 * 40 * 13);
  });
}

TEMPLATE_TEST_CASE("gemm: a chain split into passes has the bits of the whole chain", "[gemm]", float, double) {
  const ThreadsScope one(1);
  on_every_target_with_amx([] {
    for (const std::int64_t k : {511, 512, 513, 1030}) {
      const Problem<TestType> problem(31, 37, k);
      for (int index = 0; index < 32; ++index) {
        INFO("k " << k << " variant " << index);
        REQUIRE(differences(problem, 31, 37, variant(index)) == 0);
        REQUIRE(differences(problem, 1, 37, variant(index)) == 0);
      }
    }
  });
}

TEMPLATE_TEST_CASE("gemm: bits do not depend on the number of threads", "[gemm]", float, double) {
  on_every_target_with_amx([] {
    struct Size {
      std::int64_t m, n, k;
    };
    for (const Size& size :
         {Size{150, 90, 70}, Size{1, 1200, 300}, Size{7, 1003, 301}, Size{13, 700, 40}, Size{530, 33, 20}}) {
      const Problem<TestType> problem(size.m, size.n, size.k);
      with_every_team([&] {
        for (const int index : {0, 2, 5, 9, 19, 24, 30}) {
          INFO("m " << size.m << " n " << size.n << " k " << size.k << " variant " << index);
          REQUIRE(differences(problem, size.m, size.n, variant(index)) == 0);
        }
      });
    }
  });
}

TEST_CASE("gemm: few rows and a B that is read in several streams have the bits that they have among more rows",
          "[gemm]") {
  const std::int64_t m = 20, n = 1030, k = 520, ldc = n + kMarginColumns;  // n k is more than 2 MiB of B
  const std::vector<float> a = numbers<float>(m * k, 1), b = numbers<float>(n * k, 2), bias = numbers<float>(n, 3);
  const std::vector<float> before = with_margin(numbers<float>(m * n, 4), m, n);
  on_every_target_with_amx([&] {
    for (const int beta : {0, 1}) {
      for (const GemmActivation activation : {GemmActivation::none, GemmActivation::gelu}) {
        const auto product = [&](std::int64_t rows) {
          std::vector<float> c = before, derivative = before;
          Gemm<float> g{.m = rows, .n = n, .k = k, .a = a.data(), .lda = k, .b = b.data(), .ldb = k};
          g.b_transposed = true;
          g.c = c.data();
          g.ldc = ldc;
          g.beta = beta;
          g.bias = bias.data();
          g.activation = activation;
          if (activation != GemmActivation::none) g.derivative = derivative.data();
          Scratch<float> scratch(gemm_scratch_bytes(g));
          gemm(g, scratch.span());
          c.insert(c.end(), derivative.begin(), derivative.end());
          return c;
        };
        const std::vector<float> wanted = product(m);
        for (const std::int64_t rows : {1, 3, 8}) {
          for (const int threads : {1, 3}) {
            const ThreadsScope team(threads);
            const std::vector<float> got = product(rows);
            std::int64_t wrong = 0;
            for (std::size_t i = 0; i < got.size(); ++i) {
              const bool computed = static_cast<std::int64_t>(i) % (m * ldc) < rows * ldc;
              wrong += !same_bits(got[i], computed ? wanted[i] : before[i % before.size()]);
            }
            INFO("rows " << rows << " threads " << threads << " beta " << beta);
            REQUIRE(wrong == 0);
          }
        }
      }
    }
  });
}

TEMPLATE_TEST_CASE("gemm: op(B) larger than one slab", "[gemm]", float, double) {
  // Only some elements are compared: the chains of all would take longer than all other tests.
  const std::int64_t m = 520, n = 1500, k = 3000;
  Problem<TestType> problem(0, 0, 0);
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.a = numbers<TestType>(m * k, 1);
  problem.bt = numbers<TestType>(n * k, 2);
  const Gemm<TestType> weights =
      on_amx(Gemm<TestType>{.m = m, .n = n, .k = k, .b = problem.bt.data(), .ldb = k, .b_transposed = true});
  Scratch<TestType> packed(packed_size(weights) * std::int64_t{sizeof(TestType)});
  pack_b(weights, packed.data());
  with_every_team([&] {
    for (const TestType* const b_packed : std::initializer_list<const TestType*>{nullptr, packed.data()}) {
      std::vector<TestType> c(static_cast<std::size_t>(m * n), kNaN<TestType>);
      run<TestType>({.m = m,
                     .n = n,
                     .k = k,
                     .a = problem.a.data(),
                     .lda = k,
                     .b = problem.bt.data(),
                     .ldb = k,
                     .b_transposed = true,
                     .c = c.data(),
                     .ldc = n,
                     .b_packed = b_packed});
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < m; i += 37) {
        for (std::int64_t j = i % 41; j < n; j += 41) {
          wrong += !same_bits(c[static_cast<std::size_t>(i * n + j)], problem.element(i, j, 0, 0));
        }
      }
      REQUIRE(wrong == 0);
      REQUIRE(std::none_of(c.begin(), c.end(), [](TestType x) { return std::isnan(x); }));
    }
  });
}

}  // namespace
}  // namespace maki::kernels
