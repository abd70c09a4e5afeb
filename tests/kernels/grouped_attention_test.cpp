// Attention whose heads share keys and values, against the plain reference and against copies of the shared ones.
#include "autograd/core/parallel.h"
#include "tests/catch.h"
#include "tests/kernels/attention_case.h"
#include "tests/threads.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Shapes of one tile, of whole heads, of heads that are cut into pieces, and of a panel group that begins and ends
// between heads that share their keys.
std::vector<AttentionCase> grouped_cases() {
  std::vector<AttentionCase> cases = {
      {.batch = 2, .queries = 7, .keys = 7, .heads = 4, .head_size = 5, .causal = true, .kv_heads = 2},
      {.batch = 3, .queries = 70, .keys = 90, .heads = 6, .head_size = 16, .causal = true, .kv_heads = 1},
      {.queries = 130, .keys = 65, .heads = 6, .head_size = 8, .kv_heads = 2},
      {.batch = 2, .queries = 33, .keys = 140, .heads = 4, .head_size = 24, .dropout = 0.3, .kv_heads = 2},
      {.queries = 530, .keys = 530, .heads = 4, .head_size = 8, .causal = true, .kv_heads = 2},
      {.queries = 520, .keys = 64, .heads = 12, .head_size = 200, .kv_heads = 4},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].scale = 0.3;
    cases[i].seed = i + 1;
  }
  for (std::int64_t s = 0; s < cases[2].keys; ++s) cases[2].mask.push_back(s % 5 != 1);
  return cases;
}

std::string describe_grouped(const AttentionCase& c) {
  return "B " + std::to_string(c.batch) + " T " + std::to_string(c.queries) + " S " + std::to_string(c.keys) + " H " +
         std::to_string(c.heads) + " K " + std::to_string(c.kv_heads) + " D " + std::to_string(c.head_size);
}

// Calls one(row, k or v, head, column): every number of gradients or values of keys with one head for each query head.
template <class One>
void for_each_copy(const AttentionCase& c, const One& one) {
  for (std::int64_t row = 0; row < c.batch * c.keys; ++row) {
    for (std::int64_t part = 0; part < 2; ++part) {
      for (std::int64_t h = 0; h < c.heads; ++h) {
        for (std::int64_t i = 0; i < c.head_size; ++i) {
          const std::int64_t copy = row * 2 * c.width() + part * c.width() + h * c.head_size + i;
          const std::int64_t shared = row * 2 * c.kv_width() + part * c.kv_width() + h / c.share() * c.head_size + i;
          one(static_cast<std::size_t>(copy), static_cast<std::size_t>(shared), part);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("grouped attention: forward and backward equal the plain reference") {
  for (const AttentionCase& c : grouped_cases()) {
    INFO(describe_grouped(c));
    const AttentionInputs<double> in = draw_attention<double>(c);
    const AttentionResult<double> wanted = reference_attention(c, in);
    on_every_target([&] {
      const AttentionResult<double> found = run_attention(c, in);
      const AttentionResult<float> narrow = run_attention(c, draw_attention<float>(c));
      REQUIRE(relative(found.y, wanted.y, 0.01) < 1e-13);
      REQUIRE(relative(found.dq, wanted.dq, 0.01) < 1e-12);
      REQUIRE(relative(found.dkv, wanted.dkv, 0.01) < 1e-12);
      REQUIRE(relative(narrow.y, wanted.y, 0.01) < 2e-6);
      REQUIRE(relative(narrow.dq, wanted.dq, 0.01) < 5e-6);
      REQUIRE(relative(narrow.dkv, wanted.dkv, 0.01) < 5e-6);
    });
  }
}

TEST_CASE("grouped attention: the bits are those of copies of the shared keys and values") {
  on_every_target([] {
    for (const AttentionCase& c : grouped_cases()) {
      INFO(describe_grouped(c));
      const AttentionInputs<float> in = draw_attention<float>(c);
      AttentionCase copied = c;
      copied.kv_heads = 0;
      AttentionInputs<float> copies = in;
      copies.kv.resize(static_cast<std::size_t>(c.batch * c.keys * 2 * c.width()));
      for_each_copy(c, [&](std::size_t copy, std::size_t shared, std::int64_t) { copies.kv[copy] = in.kv[shared]; });
      const AttentionResult<float> found = run_attention(c, in), wanted = run_attention(copied, copies);
      REQUIRE(found.y == wanted.y);
      REQUIRE(found.lse == wanted.lse);
      REQUIRE(found.dq == wanted.dq);
      // Gradients of values are added in ascending order of the heads. Those of keys are multiplied as they are added,
      // perhaps with a single rounding.
      std::vector<float> sums(in.kv.size());
      for_each_copy(c, [&](std::size_t copy, std::size_t shared, std::int64_t) { sums[shared] += wanted.dkv[copy]; });
      int wrong = 0;
      for_each_copy(c, [&](std::size_t, std::size_t shared, std::int64_t part) {
        if (part == 1) wrong += found.dkv[shared] != sums[shared];
      });
      REQUIRE(wrong == 0);
      REQUIRE(relative(found.dkv, {sums.begin(), sums.end()}, 0.01) < 1e-6);
    }
  });
}

TEST_CASE("grouped attention: the number of threads changes no bit") {
  for (const AttentionCase& c : grouped_cases()) {
    INFO(describe_grouped(c));
    const AttentionInputs<float> in = draw_attention<float>(c);
    const ThreadsScope one(1);
    const AttentionResult<float> alone = run_attention(c, in);
    for (const int n : {2, 3, 8}) {
      const ThreadsScope several(n);
      const AttentionResult<float> together = run_attention(c, in);
      REQUIRE(together.y == alone.y);
      REQUIRE(together.dq == alone.dq);
      REQUIRE(together.dkv == alone.dkv);
    }
  }
}

TEST_CASE("grouped attention: gradients are written or added to as told") {
  for (const AttentionCase& c : grouped_cases()) {
    INFO(describe_grouped(c));
    const AttentionInputs<double> in = draw_attention<double>(c);
    const AttentionResult<double> once = run_attention(c, in), twice = run_attention(c, in, &once);
    for (std::size_t i = 0; i < once.dkv.size(); ++i) REQUIRE(twice.dkv[i] == Approx(2 * once.dkv[i]).margin(1e-12));
  }
}
