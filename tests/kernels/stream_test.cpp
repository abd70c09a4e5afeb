// Results that are stored past the caches (kernels/simd/stream.h) against the same results through them, bit for bit:
// an array that does not begin at a cache line is never stored past them.
#include "autograd/kernels/simd/stream.h"

#include <vector>

#include "autograd/kernels/attention/attention.h"
#include "tests/catch.h"
#include "tests/kernels/bf16_units.h"
#include "tests/kernels/gemm_case.h"

namespace maki::kernels {
namespace {

/// An array that begins at a cache line, or `offset` elements after one. It is filled with NaN.
class Array {
 public:
  Array(std::int64_t count, std::int64_t offset)
      : count_(count), offset_(offset), memory_((count + offset) * std::int64_t{sizeof(float)}) {}
  float* data() { return memory_.data() + offset_; }
  std::vector<float> values() { return {data(), data() + count_}; }
  bool guard_is_intact() const { return memory_.guard_is_intact(); }

 private:
  std::int64_t count_, offset_;
  Scratch<float> memory_;
};

/// y and the derivative of a product with rounded operands.
std::vector<float> product(GemmSizes s, GemmActivation activation, std::int64_t offset) {
  const std::vector<float> a = numbers<float>(s.m * s.k, 1), b = numbers<float>(s.n * s.k, 2);
  const std::int64_t kept = activation == GemmActivation::none ? 0 : s.m * s.n;
  Array c(s.m * s.n, offset), derivative(kept, offset);
  Gemm<float> g{.m = s.m, .n = s.n, .k = s.k, .a = a.data(), .lda = s.k, .b = b.data(), .ldb = s.k};
  g.b_transposed = true;
  g.c = c.data();
  g.ldc = s.n;
  g.rounds_operands = true;
  g.activation = activation;
  if (kept > 0) g.derivative = derivative.data();
  run(g);
  REQUIRE(goes_past_caches(g.c, g.ldc, s.m * s.n * std::int64_t{sizeof(float)}) == (offset == 0));
  REQUIRE((c.guard_is_intact() && derivative.guard_is_intact()));
  std::vector<float> all = c.values();
  const std::vector<float> more = derivative.values();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST_CASE("products with rounded operands have the same bits if they are stored past the caches") {
  const Streaming on;
  on_every_unit([] {
    for (const int threads : {1, 3}) {
      const ThreadsScope team(threads);
      for (const auto activation : {GemmActivation::gelu, GemmActivation::gelu_tanh, GemmActivation::none}) {
        for (const GemmSizes& size : {GemmSizes{1030, 528, 9}, {70, 8192, 9}}) {
          INFO("threads " << threads << ", m " << size.m << ", activation " << static_cast<int>(activation));
          REQUIRE(equal_bits(product(size, activation, 0), product(size, activation, 1)));
        }
      }
    }
  });
}

/// dq, dk and dv of causal attention, side by side.
std::vector<float> gradients(const AttentionShape& s, std::int64_t offset) {
  const std::int64_t width = s.heads * s.head_size, rows = s.batch * s.queries, row = 3 * width;
  const std::vector<float> qkv = numbers<float>(rows * row, 1), dy = numbers<float>(rows * width, 2);
  std::vector<float> y(dy.size()), lse(static_cast<std::size_t>(s.batch * s.heads * s.queries));
  Array to(rows * row, offset);
  const auto part = [&](auto* data, std::int64_t i) {
    return HeadRows<std::remove_pointer_t<decltype(data)>>{data + i * width, row, s.queries * row};
  };
  const auto sink = [&](std::int64_t i) { return HeadSink<float>{to.data() + i * width, row, s.queries * row, false}; };
  const auto whole = [&](auto* data) {
    return HeadRows<std::remove_pointer_t<decltype(data)>>{data, width, s.queries * width};
  };
  Scratch<float> forward(attention_forward_scratch<float>(s) * std::int64_t{sizeof(float)});
  Scratch<float> backward(attention_backward_scratch<float>(s) * std::int64_t{sizeof(float)});
  const float* const x = qkv.data();
  attention_forward<float>(s, part(x, 0), part(x, 1), part(x, 2), whole(y.data()), lse.data(), forward.data());
  const float* const output = y.data();
  attention_backward<float>(s, part(x, 0), part(x, 1), part(x, 2), whole(output), whole(dy.data()), lse.data(), sink(0),
                            sink(1), sink(2), backward.data());
  REQUIRE(goes_past_caches(to.data(), row, rows * row * std::int64_t{sizeof(float)}) == (offset == 0));
  REQUIRE(to.guard_is_intact());
  return to.values();
}

TEST_CASE("gradients of attention have the same bits if they are stored past the caches") {
  const Streaming on;
  on_every_unit([] {
    for (const bool rounds : {false, true}) {
      AttentionShape s{.batch = 60, .queries = 37, .keys = 37, .heads = 4, .head_size = 32, .causal = true};
      s.rounds_operands = rounds;
      s.scale = 0.2;
      for (const int threads : {1, 3}) {
        const ThreadsScope team(threads);
        INFO("threads " << threads << ", rounds " << rounds);
        REQUIRE(equal_bits(gradients(s, 0), gradients(s, 1)));
      }
    }
  });
}

}  // namespace
}  // namespace maki::kernels
