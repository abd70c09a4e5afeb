// The upper part of symmetric products.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "autograd/kernels/gemm/gemm.h"
#include "tests/catch.h"
#include "tests/kernels/gemm_case.h"

namespace maki::kernels {
namespace {

// A batch of X Xᵀ (X [n, k]), of Xᵀ X (X [k, n]), or of squares of symmetric matrices [n, n].
enum class Form : std::uint8_t { rows, columns, square };

template <class T>
std::vector<T> operand(Form form, std::int64_t batch, std::int64_t n, std::int64_t k) {
  std::vector<T> x = numbers<T>(batch * n * k, 1);
  if (form != Form::square) return x;
  for (std::int64_t i = 0; i < batch * n; ++i) {
    for (std::int64_t j = 0; j < i % n; ++j) {
      x[static_cast<std::size_t>(i * n + j)] = x[static_cast<std::size_t>((i / n * n + j) * n + i % n)];
    }
  }
  return x;
}

template <class T>
Gemm<T> product(Form form, std::int64_t batch, std::int64_t n, std::int64_t k, const std::vector<T>& x,
                std::vector<T>& c) {
  const std::int64_t ld = form == Form::rows ? k : n, ldc = n + kMarginColumns;
  c.assign(static_cast<std::size_t>(batch * n * ldc), kNaN<T>);
  Gemm<T> g{.m = n, .n = n, .k = k, .a = x.data(), .lda = ld, .b = x.data(), .ldb = ld, .c = c.data(), .ldc = ldc};
  g.a_transposed = form == Form::columns;
  g.b_transposed = form == Form::rows;
  g.batch = batch;
  g.stride_a = g.stride_b = n * k;
  g.stride_c = n * ldc;
  return g;
}

TEMPLATE_TEST_CASE("gemm: the upper part of a symmetric product is that of the whole, and its mirror image", "[gemm]",
                   float, double) {
  using T = TestType;
  struct Case {
    std::int64_t batch, n, k;
  };
  on_every_target_with_amx([] {
    for (const Case& s : {Case{1, 1, 3}, Case{1, 7, 0}, Case{1, 40, 33}, Case{3, 40, 33}, Case{20, 33, 9},
                          Case{1, 100, 530}, Case{1, 200, 70}, Case{3, 130, 20}, Case{1, 600, 5}}) {
      for (const Form form : {Form::rows, Form::columns, Form::square}) {
        const std::int64_t k = form == Form::square ? s.n : s.k;
        const std::vector<T> x = operand<T>(form, s.batch, s.n, k);
        std::vector<T> whole, upper;
        run(product(form, s.batch, s.n, k, x, whole));
        Gemm<T> g = product(form, s.batch, s.n, k, x, upper);
        g.upper = true;
        const bool mirrored = !runs_on_amx(on_amx(g));
        with_every_team([&] {
          INFO("batch " << s.batch << " n " << s.n << " k " << k << " form " << static_cast<int>(form));
          std::ranges::fill(upper, kNaN<T>);
          run(g);
          const std::int64_t ldc = s.n + kMarginColumns;
          bool right = true, same = true, margin = true;
          std::int64_t left_out = 0;
          for (std::int64_t row = 0; row < s.batch * s.n; ++row) {
            const std::int64_t i = row % s.n, first = row - i;
            for (std::int64_t j = 0; j < ldc; ++j) {
              const T value = upper[static_cast<std::size_t>(row * ldc + j)];
              const T expected = whole[static_cast<std::size_t>(row * ldc + j)];
              if (j >= s.n) {
                margin = margin && value != value;
              } else if (j >= i) {
                right = right && same_bits(value, expected);
                const T other = whole[static_cast<std::size_t>((first + j) * ldc + i)];
                same = same && (!mirrored || same_bits(value, other));
              } else if (value != value) {
                ++left_out;
              }
            }
          }
          REQUIRE(right);
          REQUIRE(same);
          REQUIRE(margin);
          // Of 200 rows, the tiles left of the diagonal are more than half of what is left of it.
          if (mirrored && s.n >= 200) REQUIRE(left_out > s.batch * s.n * s.n / 4);
        });
      }
    }
  });
}

}  // namespace
}  // namespace maki::kernels
