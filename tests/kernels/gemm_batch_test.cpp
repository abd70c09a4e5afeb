// Batches of products whose fused activation saves its derivative.
#include <algorithm>
#include <vector>

#include "tests/kernels/gemm_case.h"

namespace maki::kernels {
namespace {

TEMPLATE_TEST_CASE("gemm: the derivatives of a batch are those of its products one by one", "[gemm]", float, double) {
  using T = TestType;
  on_every_target_with_amx([] {
    const std::int64_t batch = 3, n = 70, k = 40, ldc = n + 3;
    // With few rows B is streamed through registers; with more, a product takes the general path.
    for (const std::int64_t m : {1, 3, 37}) {
      const std::int64_t stride_c = m * ldc + 5;
      const std::vector<T> a = numbers<T>(batch * m * k, 1), b = numbers<T>(batch * n * k, 2), bias = numbers<T>(n, 3);
      const std::vector<T> before = numbers<T>(batch * stride_c, 4);
      for (const GemmActivation activation : {GemmActivation::gelu, GemmActivation::gelu_tanh}) {
        Gemm<T> g{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .b = b.data(), .ldb = k, .b_transposed = true};
        g.ldc = ldc;
        g.bias = bias.data();
        g.activation = activation;
        std::vector<T> expected = before, expected_slopes = before;
        for (std::int64_t item = 0; item < batch; ++item) {
          Gemm<T> one = g;
          one.a += item * m * k;
          one.b += item * n * k;
          one.c = expected.data() + item * stride_c;
          one.derivative = expected_slopes.data() + item * stride_c;
          run(one);
        }
        with_every_team([&] {
          std::vector<T> y = before, slopes = before;
          g.c = y.data();
          g.derivative = slopes.data();
          g.batch = batch;
          g.stride_a = m * k;
          g.stride_b = n * k;
          g.stride_c = stride_c;
          run(g);
          INFO("m " << m);
          REQUIRE(std::equal(y.begin(), y.end(), expected.begin(), same_bits<T>));
          REQUIRE(std::equal(slopes.begin(), slopes.end(), expected_slopes.begin(), same_bits<T>));
        });
      }
    }
  });
}

}  // namespace
}  // namespace maki::kernels
