// GEMM against the plain chain  x = C or 0; x = MulAdd(a, b, x) for k = 0, 1, …; x += bias, bit for bit: on every
// target, in every layout, at every thread count. The reference rounds as the target does: once a step where MulAdd is
// fused.
#include "autograd/kernels/gemm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/target.h"
#include "tests/catch.h"

namespace maki::kernels {
namespace {

template <class T>
constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

template <class T>
bool same_bits(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b);
}

/// Numbers in (-1, 1) with full mantissas, so that the order of a sum shows.
template <class T>
std::vector<T> numbers(std::int64_t count, std::uint64_t seed) {
  std::vector<T> values(static_cast<std::size_t>(count));
  std::uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (T& x : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<T>(static_cast<double>(static_cast<std::int64_t>(state)) * 0x1p-63);
  }
  return values;
}

/// Memory on a 64-byte boundary, all NaN, with a guard behind it.
template <class T>
class Scratch {
 public:
  explicit Scratch(std::int64_t bytes)
      : size_(static_cast<std::size_t>(bytes)),
        memory_(static_cast<std::byte*>(::operator new (size_ + 64, std::align_val_t{64}))) {
    std::fill_n(memory_.get(), size_ + 64, std::byte{0xFF});  // NaN in both types
  }
  std::span<std::byte> span() { return {memory_.get(), size_}; }
  T* data() { return reinterpret_cast<T*>(memory_.get()); }
  bool guard_is_whole() const {
    return std::all_of(memory_.get() + size_, memory_.get() + size_ + 64,
                       [](std::byte b) { return b == std::byte{0xFF}; });
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  std::size_t size_;
  std::unique_ptr<std::byte, Free> memory_;
};

template <class T>
void run(const Gemm<T>& g) {
  Scratch<T> scratch(gemm_scratch_bytes(g));
  gemm(g, scratch.span());
  REQUIRE(scratch.guard_is_whole());
}

/// C columns of NaN (or of what was there) between n and ldc, which must survive.
constexpr std::int64_t kMargin = 3;

/// One problem: op(A) [m, k], op(B) [k, n] in both layouts, C and bias, and the chains of all elements. An element's
/// chain does not know m and n, so every smaller product is compared with a corner of this one.
template <class T>
struct Problem {
  Problem(std::int64_t m_, std::int64_t n_, std::int64_t k_, bool fused) : m(m_), n(n_), k(k_) {
    a = numbers<T>(m * k, 1), b = numbers<T>(k * n, 2), c = numbers<T>(m * n, 3), bias = numbers<T>(n, 4);
    at.resize(a.size()), bt.resize(b.size());
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t p = 0; p < k; ++p) at[index(p * m + i)] = a[index(i * k + p)];
    for (std::int64_t p = 0; p < k; ++p)
      for (std::int64_t j = 0; j < n; ++j) bt[index(j * k + p)] = b[index(p * n + j)];
    for (const int beta : {0, 1}) {
      chains[beta].resize(c.size());
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) chains[beta][index(i * n + j)] = chain(i, j, beta, fused);
    }
  }
  T chain(std::int64_t i, std::int64_t j, int beta, bool fused) const {
    T x = beta == 1 ? c[index(i * n + j)] : T{0};
    for (std::int64_t p = 0; p < k; ++p) {
      const T u = a[index(i * k + p)], v = bt[index(j * k + p)];
      x = fused ? std::fma(u, v, x) : u * v + x;
    }
    return x;
  }
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

  std::int64_t m, n, k;
  std::vector<T> a, at, b, bt, c, bias, chains[2];
};

struct Variant {
  bool a_transposed, b_transposed, packed, with_bias;
  int beta;
};
Variant variant(int index) {  // all 32
  return {(index & 1) != 0, (index & 2) != 0, (index & 4) != 0, (index & 8) != 0, (index & 16) != 0 ? 1 : 0};
}

/// The upper left [m, n] of a problem: the number of elements whose bits differ, margin included.
template <class T>
std::int64_t differences(const Problem<T>& problem, std::int64_t m, std::int64_t n, const Variant& v) {
  const auto index = Problem<T>::index;
  const std::int64_t ldc = n + kMargin;
  std::vector<T> c(index(m * ldc), kNaN<T>);
  if (v.beta == 1) {
    for (std::int64_t i = 0; i < m; ++i) std::copy_n(&problem.c[index(i * problem.n)], n, &c[index(i * ldc)]);
  }
  Gemm<T> g{.m = m, .n = n, .k = problem.k};
  g.a = v.a_transposed ? problem.at.data() : problem.a.data();
  g.lda = v.a_transposed ? problem.m : problem.k;
  g.a_transposed = v.a_transposed;
  g.b = v.b_transposed ? problem.bt.data() : problem.b.data();
  g.ldb = v.b_transposed ? problem.k : problem.n;
  g.b_transposed = v.b_transposed;
  g.c = c.data();
  g.ldc = ldc;
  g.beta = v.beta;
  g.bias = v.with_bias ? problem.bias.data() : nullptr;
  Scratch<T> packed(v.packed ? packed_size<T>(n, problem.k) * std::int64_t{sizeof(T)} : 0);
  if (v.packed) {
    pack_b(n, problem.k, g.b, g.ldb, g.b_transposed, packed.data());
    REQUIRE(packed.guard_is_whole());
    g.b = nullptr;
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
      T want = problem.chains[v.beta][index(i * problem.n + j)];
      if (v.with_bias) want += problem.bias[index(j)];
      wrong += !same_bits(got, want);
    }
  }
  return wrong;
}

/// body(fused) on every target of this CPU, which is printed; the one in use comes back afterwards.
template <class Body>
void on_every_target(const Body& body) {
  struct Restore {
    ~Restore() { force_target(""); }
  } restore;
  for (const std::string& name : available_targets()) {
    force_target(name);
    REQUIRE(target() == name);
    INFO("target " << name);
    body(name != "sse4" && name != "floor");
  }
}

/// body() with teams of 1, 2, 3, 4, 8.
template <class Body>
void with_every_team(const Body& body) {
  struct Restore {
    int before = threads();
    ~Restore() { set_threads(before); }
  } restore;
  for (const int team : {1, 2, 3, 4, 8}) {
    set_threads(team);
    INFO("threads " << team);
    body();
  }
}

TEMPLATE_TEST_CASE("gemm: every element is its chain, for every height and layout", "[gemm]", float, double) {
  on_every_target([](bool fused) {
    std::int64_t products = 0;
    for (const std::int64_t k : {0, 1, 2, 3, 7, 16, 33, 130}) {
      const Problem<TestType> problem(40, 70, k, fused);
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

TEMPLATE_TEST_CASE("gemm: a chain cut into passes is the same chain", "[gemm]", float, double) {
  on_every_target([](bool fused) {
    for (const std::int64_t k : {511, 512, 513, 1030}) {
      const Problem<TestType> problem(31, 37, k, fused);
      for (int index = 0; index < 32; ++index) {
        INFO("k " << k << " variant " << index);
        REQUIRE(differences(problem, 31, 37, variant(index)) == 0);
        REQUIRE(differences(problem, 1, 37, variant(index)) == 0);
      }
    }
  });
}

TEMPLATE_TEST_CASE("gemm: bits do not depend on the number of threads", "[gemm]", float, double) {
  on_every_target([](bool fused) {
    struct Size {
      std::int64_t m, n, k;
    };
    for (const Size& size : {Size{150, 90, 70}, Size{1, 1200, 300}, Size{13, 700, 40}, Size{530, 33, 20}}) {
      const Problem<TestType> problem(size.m, size.n, size.k, fused);
      with_every_team([&] {
        for (const int index : {0, 2, 5, 9, 19, 24, 30}) {
          INFO("m " << size.m << " n " << size.n << " k " << size.k << " variant " << index);
          REQUIRE(differences(problem, size.m, size.n, variant(index)) == 0);
        }
      });
    }
  });
}

TEMPLATE_TEST_CASE("gemm: op(B) larger than one slab", "[gemm]", float, double) {
  // Chains of a few elements only: the whole would take longer than all other tests.
  const std::int64_t m = 520, n = 1500, k = 3000;
  Problem<TestType> problem(0, 0, 0, true);
  problem.m = m, problem.n = n, problem.k = k;
  problem.a = numbers<TestType>(m * k, 1), problem.bt = numbers<TestType>(n * k, 2);
  const bool fused = target() != "sse4" && target() != "floor";
  with_every_team([&] {
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
                   .ldc = n});
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < m; i += 37) {
      for (std::int64_t j = i % 41; j < n; j += 41) {
        wrong += !same_bits(c[static_cast<std::size_t>(i * n + j)], problem.chain(i, j, 0, fused));
      }
    }
    REQUIRE(wrong == 0);
    REQUIRE(std::none_of(c.begin(), c.end(), [](TestType x) { return std::isnan(x); }));
  });
}

TEMPLATE_TEST_CASE("gemm: a batch is its products one by one", "[gemm]", float, double) {
  using T = TestType;
  struct Case {
    std::int64_t batch, m, n, k;
  };
  for (const Case& s : {Case{3, 50, 60, 70}, Case{20, 9, 40, 33}, Case{1, 5, 6, 7}, Case{40, 20, 16, 0}}) {
    const std::vector<T> a = numbers<T>(s.batch * s.m * s.k, 1), b = numbers<T>(s.batch * s.k * s.n, 2),
                         bias = numbers<T>(s.n, 3), c0 = numbers<T>(s.batch * s.m * s.n, 4);
    for (int index = 0; index < 32; ++index) {
      const Variant v = variant(index);
      Gemm<T> g{.m = s.m, .n = s.n, .k = s.k};
      g.a = a.data(), g.lda = v.a_transposed ? s.m : s.k, g.a_transposed = v.a_transposed;
      g.b = b.data(), g.ldb = v.b_transposed ? s.k : s.n, g.b_transposed = v.b_transposed;
      g.ldc = s.n, g.beta = v.beta, g.bias = bias.data();
      const std::int64_t stride_a = v.with_bias ? 0 : s.m * s.k, stride_b = v.packed ? 0 : s.k * s.n;
      std::vector<T> one_by_one = c0;
      for (std::int64_t item = 0; item < s.batch; ++item) {
        Gemm<T> single = g;
        single.a += item * stride_a, single.b += item * stride_b, single.c = one_by_one.data() + item * s.m * s.n;
        run(single);
      }
      with_every_team([&] {
        std::vector<T> together = c0;
        Gemm<T> batched = g;
        batched.c = together.data();
        batched.batch = s.batch, batched.stride_a = stride_a, batched.stride_b = stride_b, batched.stride_c = s.m * s.n;
        run(batched);
        INFO("batch " << s.batch << " variant " << index);
        REQUIRE(std::equal(together.begin(), together.end(), one_by_one.begin(), same_bits<T>));
      });
    }
  }
}

TEMPLATE_TEST_CASE("gemm: a fused activation has the bits of the composed one", "[gemm]", float, double) {
  using T = TestType;
  on_every_target([](bool) {
    const std::int64_t m = 37, k = 530, ldc = 75;
    for (const std::int64_t n : {1, 16, 33, 70}) {
      const std::vector<T> a = numbers<T>(m * k, 1), b = numbers<T>(k * n, 2), bias = numbers<T>(n, 3);
      std::vector<T> plain(static_cast<std::size_t>(m * ldc), T(3)), fused = plain, kept = plain;
      Gemm<T> g{
          .m = m, .n = n, .k = k, .a = a.data(), .lda = k, .b = b.data(), .ldb = n, .c = plain.data(), .ldc = ldc};
      g.bias = bias.data();
      run(g);
      for (const Activation activation : {Activation::gelu_erf, Activation::gelu_tanh}) {
        g.c = fused.data(), g.preactivation = kept.data(), g.activation = activation;
        run(g);
        std::vector<T> composed = plain;
        for (std::int64_t i = 0; i < m; ++i) {
          T* row = &composed[static_cast<std::size_t>(i * ldc)];
          unary_forward(activation == Activation::gelu_erf ? Unary::gelu : Unary::gelu_tanh, n, row, row);
        }
        INFO("n " << n);
        REQUIRE(std::equal(kept.begin(), kept.end(), plain.begin(), same_bits<T>));
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

TEST_CASE("gemm: NaN and Inf travel as in the chain", "[gemm]") {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> a = {inf, 1, 0, kNaN<float>, 1, 2}, b = {0, 1, 1, 1, 2, 2}, c(4, 5);  // [2, 3] x [3, 2]
  run<float>({.m = 2, .n = 2, .k = 3, .a = a.data(), .lda = 3, .b = b.data(), .ldb = 2, .c = c.data(), .ldc = 2});
  REQUIRE(std::isnan(c[0]));  // Inf * 0
  REQUIRE(c[1] == inf);
  REQUIRE(std::isnan(c[2]));
  REQUIRE(std::isnan(c[3]));
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

TEST_CASE("gemm: mistakes give sentences", "[gemm]") {
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
  REQUIRE(with([](Gemm<float>& g) { g.batch = 2; }).find("overlap") != std::string::npos);
  Scratch<float> small(0);
  REQUIRE(sentence_of([&] { gemm(good, small.span()); }).find("bytes of scratch; got 0") != std::string::npos);
}

}  // namespace
}  // namespace maki::kernels
