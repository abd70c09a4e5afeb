// The attention kernels against a plain reference, and their guarantees about bits, on every SIMD target of this
// machine.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/target.h"
#include "tests/catch.h"
#include "tests/kernels/attention_case.h"

using namespace maki;
using namespace maki::tests;

namespace {

template <class T>
void require_close(const AttentionResult<T>& a, const AttentionResult<double>& b, double bound) {
  REQUIRE(relative(a.y, b.y, 0.01) < bound);
  REQUIRE(relative(a.lse, b.lse, 0.1) < bound);
  // With one key the gradient of q is mathematically zero, so the errors of both are relative to their common norm.
  const double norm = std::max(std::hypot(norm_of(b.dq), norm_of(b.dkv)), 1e-3);
  REQUIRE(relative(a.dq, b.dq, norm) < bound);
  REQUIRE(relative(a.dkv, b.dkv, norm) < bound);
}

// Whether `rows` rows of `width` numbers have the same bits, in a from row `from_a` on and in b from row `from_b` on.
template <class T>
bool same_rows(const std::vector<T>& a, std::int64_t from_a, const std::vector<T>& b, std::int64_t from_b,
               std::int64_t rows, std::int64_t width) {
  return std::memcmp(a.data() + from_a * width, b.data() + from_b * width,
                     static_cast<std::size_t>(rows * width) * sizeof(T)) == 0;
}
template <class T>
bool all_zero(const std::vector<T>& x) {
  return !x.empty() && std::all_of(x.begin(), x.end(), [](T value) { return value == 0; });
}

AttentionCase drawn_case(std::uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::test, 99);
  const auto pick = [&](std::uint64_t call, std::initializer_list<std::int64_t> from) {
    return from.begin()[stream.below(call, from.size())];
  };
  AttentionCase c{.batch = pick(0, {1, 2, 3}),
                  .queries = pick(1, {1, 2, 3, 7, 8, 9, 13, 16, 17, 31, 64, 65, 100, 129, 150}),
                  .keys = pick(2, {1, 2, 5, 8, 15, 16, 17, 33, 63, 64, 65, 100, 128, 150}),
                  .heads = pick(3, {1, 2, 3}),
                  .head_size = pick(4, {1, 2, 3, 5, 8, 13, 16, 17, 24, 32, 40, 64, 80}),
                  .causal = stream.below(5, 2) == 1,
                  .scale = 0.3,
                  .dropout = stream.below(6, 3) == 0 ? 0.3 : 0,
                  .seed = seed};
  if (stream.below(7, 2) == 0) c.keys = c.queries;
  if (stream.below(8, 3) == 0) {
    for (std::int64_t i = 0; i < c.batch * c.keys; ++i) {
      c.mask.push_back(stream.below(100 + static_cast<std::uint64_t>(i), 3) != 0);
    }
  }
  return c;
}

std::string describe_case(const AttentionCase& c) {
  return "B " + std::to_string(c.batch) + " T " + std::to_string(c.queries) + " S " + std::to_string(c.keys) + " H " +
         std::to_string(c.heads) + " D " + std::to_string(c.head_size) + (c.causal ? " causal" : "") +
         (c.mask.empty() ? "" : " masked") + (c.dropout > 0 ? " dropout" : "");
}

// Queries [from, from + count) and the keys that they see in a call of their own, as in generation with a cache.
template <class T>
AttentionResult<T> cached(const AttentionCase& c, const AttentionInputs<T>& in, std::int64_t from, std::int64_t count) {
  AttentionCase part = c;
  part.queries = count;
  part.keys = from + count;
  part.mask.clear();
  AttentionInputs<T> some;
  const auto copy = [](const std::vector<T>& x, std::vector<T>& to, std::int64_t begin, std::int64_t n) {
    to.insert(to.end(), x.begin() + begin, x.begin() + begin + n);
  };
  for (std::int64_t b = 0; b < c.batch; ++b) {
    copy(in.q, some.q, (b * c.queries + from) * c.width(), count * c.width());
    copy(in.kv, some.kv, b * c.keys * 2 * c.width(), part.keys * 2 * c.width());
    for (std::int64_t s = 0; s < part.keys && !c.mask.empty(); ++s) {
      part.mask.push_back(c.mask[static_cast<std::size_t>(b * c.keys + s)]);
    }
  }
  return run_attention(part, some);
}

template <class T>
void require_cached_equals_full(AttentionCase c) {
  const AttentionInputs<T> in = draw_attention<T>(c);
  const AttentionResult<T> full = run_attention(c, in);
  for (const std::int64_t count : {1, 3, 20}) {
    for (std::int64_t t = 0; t + count <= c.queries; t += count == 1 ? 1 : 13) {
      const AttentionResult<T> part = cached(c, in, t, count);
      INFO("queries from " << t << ", " << count << " of them, " << sizeof(T) * 8 << " bits, " << describe_case(c));
      for (std::int64_t b = 0; b < c.batch; ++b) {
        REQUIRE(same_rows(part.y, b * count, full.y, b * c.queries + t, count, c.width()));
      }
    }
  }
}

void require_reference_on_every_target(const AttentionCase& c) {
  const AttentionInputs<double> in = draw_attention<double>(c);
  const AttentionResult<double> wanted = reference_attention(c, in);
  on_every_target([&] {
    require_close(run_attention(c, in), wanted, 1e-13);
    require_close(run_attention(c, draw_attention<float>(c)), wanted, 2e-6);
  });
}

}  // namespace

TEST_CASE("attention: forward and backward equal the plain reference") {
  int masked = 0, dropped = 0, long_ones = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const AttentionCase c = drawn_case(seed);
    INFO("seed " << seed << ": " << describe_case(c));
    require_reference_on_every_target(c);
    masked += !c.mask.empty();
    dropped += c.dropout > 0;
    long_ones += c.queries > 128;
  }
  REQUIRE(std::min({masked, dropped, long_ones}) >= 5);
}

TEST_CASE("attention: rows that see few keys, some of them of later blocks, equal the plain reference") {
  for (const AttentionCase& c : late_key_cases()) {
    INFO(describe_case(c));
    require_reference_on_every_target(c);
  }
}

TEST_CASE("attention: queries in a call of their own have the bits that they have in the full causal forward") {
  on_every_target([] {
    for (const std::int64_t head_size : {1, 5, 16, 32, 33, 80}) {
      AttentionCase c{.batch = 2, .queries = 150, .keys = 150, .heads = 2, .head_size = head_size, .causal = true};
      c.seed = static_cast<std::uint64_t>(head_size);
      if (head_size == 33 || head_size == 16) {
        for (std::int64_t i = 0; i < c.batch * c.keys; ++i) c.mask.push_back(i % 7 != 3 && (i < 60 || i > 140));
      }
      require_cached_equals_full<float>(c);
      require_cached_equals_full<double>(c);
    }
  });
}

TEST_CASE("attention: few long heads, whose backward is split into steps, equal the reference") {
  for (AttentionCase c : {AttentionCase{.queries = 530, .keys = 530, .heads = 2, .head_size = 8, .causal = true},
                          AttentionCase{.queries = 70, .keys = 600, .head_size = 8, .causal = true, .dropout = 0.1},
                          AttentionCase{.queries = 600, .keys = 130, .head_size = 5, .causal = true},
                          AttentionCase{.queries = 513, .keys = 300, .head_size = 17},
                          // panels that are too large for ten heads at the same time
                          AttentionCase{.queries = 520, .keys = 64, .heads = 10, .head_size = 200}}) {
    c.scale = 0.3;
    if (c.head_size == 17) {
      for (std::int64_t s = 0; s < c.keys; ++s) c.mask.push_back(s % 11 != 4);
    }
    INFO(describe_case(c));
    require_reference_on_every_target(c);
  }
}

TEST_CASE("attention: many threads need no more scratch than the heads in progress") {
  const int before = threads();
  set_threads(64);
  const auto megabytes = [](std::int64_t heads, std::int64_t tokens) {
    const kernels::AttentionShape shape{
        .batch = 1, .queries = tokens, .keys = tokens, .heads = heads, .head_size = 64, .causal = true, .scale = 1};
    return static_cast<double>(kernels::attention_backward_scratch<float>(shape)) * 4e-6;
  };
  const double operands = 8 * 64 * 4e-6;  // megabytes per token and head of q, k, v, y and their gradients
  CHECK(megabytes(64, 65536) < 1100);     // it would be 8.6 GB if each thread had room for a head
  CHECK(megabytes(32, 65536) < 1100);
  CHECK(megabytes(1, 300) < 2 * 300 * operands);
  CHECK(megabytes(8, 256) < 2 * 8 * 256 * operands);
  CHECK(megabytes(96, 1024) < 140);
  set_threads(before);
}

TEST_CASE("attention: the number of threads changes no bit") {
  const int before = threads();
  for (AttentionCase c :
       {AttentionCase{.batch = 2, .queries = 300, .keys = 300, .heads = 3, .head_size = 20, .causal = true},
        AttentionCase{.queries = 900, .keys = 900, .heads = 2, .head_size = 20, .causal = true},
        AttentionCase{.queries = 600, .keys = 700, .heads = 1, .head_size = 20}}) {
    c.dropout = 0.2;
    INFO(describe_case(c));
    const AttentionInputs<float> in = draw_attention<float>(c);
    set_threads(1);
    const AttentionResult<float> alone = run_attention(c, in);
    for (const int n : {2, 3, 4, 8}) {
      set_threads(n);
      const AttentionResult<float> together = run_attention(c, in);
      CHECK(together.y == alone.y);
      CHECK(together.dq == alone.dq);
      CHECK(together.dkv == alone.dkv);
    }
  }
  set_threads(before);
}

TEST_CASE("attention: a token has no effect on earlier rows, nor on other sequences") {
  on_every_target([] {
    AttentionCase c{.batch = 3, .queries = 90, .keys = 90, .heads = 2, .head_size = 12, .causal = true};
    const AttentionInputs<float> in = draw_attention<float>(c);
    const AttentionResult<float> before = run_attention(c, in);
    const std::int64_t width = c.width();
    for (const std::int64_t token : {0, 1, 31, 63, 64, 89}) {
      AttentionInputs<float> changed = in;
      const std::int64_t row = c.keys + token;  // of the second sequence
      for (std::int64_t i = 0; i < 2 * width; ++i) changed.kv[static_cast<std::size_t>(row * 2 * width + i)] += 1;
      const AttentionResult<float> after = run_attention(c, changed);
      REQUIRE(same_rows(before.y, 0, after.y, 0, c.queries + token, width));
      REQUIRE(same_rows(before.y, 2 * c.queries, after.y, 2 * c.queries, c.queries, width));
      for (std::int64_t t = token; t < c.queries; ++t) {
        REQUIRE(!same_rows(before.y, c.queries + t, after.y, c.queries + t, 1, width));
      }
    }
  });
}

TEST_CASE("attention: NaN and Inf in a key do not reach the rows that do not see it") {
  on_every_target([] {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      AttentionCase c{.batch = 1, .queries = 100, .keys = 100, .heads = 1, .head_size = 20, .causal = true};
      const AttentionInputs<float> in = draw_attention<float>(c);
      const AttentionResult<float> clean = run_attention(c, in);
      for (const std::int64_t token : {0, 5, 50, 66, 99}) {
        for (const std::int64_t column : {3, 23}) {  // of k, of v
          INFO("token " << token << " column " << column << " value " << bad);
          AttentionInputs<float> corrupted = in;
          corrupted.kv[static_cast<std::size_t>(token * 40 + column)] = bad;
          const AttentionResult<float> result = run_attention(c, corrupted);
          REQUIRE(same_rows(clean.y, 0, result.y, 0, token, 20));
          REQUIRE(same_rows(clean.dq, 0, result.dq, 0, token, 20));
          for (std::int64_t t = token; t < 100 && std::isnan(bad); ++t) {
            REQUIRE(std::isnan(result.y[static_cast<std::size_t>(t * 20 + 3)]));
            REQUIRE(std::isnan(result.dq[static_cast<std::size_t>(t * 20 + 3)]));
          }
        }
      }
    }
  });
}

TEST_CASE("attention: NaN in a query or its gradient reaches the keys it sees and no others") {
  on_every_target([] {
    const float bad = std::numeric_limits<float>::quiet_NaN();
    AttentionCase c{.batch = 1, .queries = 100, .keys = 100, .heads = 1, .head_size = 20, .causal = true};
    const AttentionInputs<float> in = draw_attention<float>(c);
    const AttentionResult<float> clean = run_attention(c, in);
    for (const std::int64_t token : {0, 5, 50, 66, 98}) {
      for (const bool in_query : {true, false}) {
        INFO("token " << token << (in_query ? " of q" : " of dy"));
        AttentionInputs<float> corrupted = in;
        (in_query ? corrupted.q : corrupted.dy)[static_cast<std::size_t>(token * 20 + 3)] = bad;
        const AttentionResult<float> result = run_attention(c, corrupted);
        REQUIRE(same_rows(clean.dkv, token + 1, result.dkv, token + 1, 99 - token, 40));
        REQUIRE(same_rows(clean.dq, 0, result.dq, 0, token, 20));
        REQUIRE(same_rows(clean.dq, token + 1, result.dq, token + 1, 99 - token, 20));
        for (std::int64_t s = 0; s <= token; ++s) REQUIRE(std::isnan(result.dkv[static_cast<std::size_t>(s * 40 + 3)]));
      }
    }
  });
}

TEST_CASE("attention: a masked key has no effect, whatever it contains") {
  on_every_target([] {
    AttentionCase c{.batch = 2, .queries = 40, .keys = 90, .heads = 2, .head_size = 9};
    for (std::int64_t i = 0; i < c.batch * c.keys; ++i) c.mask.push_back(i % 5 != 2);
    const AttentionInputs<float> in = draw_attention<float>(c);
    AttentionInputs<float> corrupted = in;
    for (std::int64_t row = 0; row < c.batch * c.keys; ++row) {
      if (row % 5 != 2) continue;
      for (std::int64_t i = 0; i < 36; ++i) {
        corrupted.kv[static_cast<std::size_t>(row * 36 + i)] = std::numeric_limits<float>::quiet_NaN();
      }
    }
    const AttentionResult<float> clean = run_attention(c, in), result = run_attention(c, corrupted);
    REQUIRE(clean.y == result.y);
    REQUIRE(clean.dq == result.dq);
    REQUIRE(clean.dkv == result.dkv);
    for (std::int64_t i = 0; i < 36; ++i) REQUIRE(result.dkv[static_cast<std::size_t>(2 * 36 + i)] == 0);
  });
}

TEST_CASE("attention: a row that sees no key is zero and contributes no gradient") {
  on_every_target([] {
    AttentionCase masked{.batch = 1, .queries = 20, .keys = 70, .heads = 2, .head_size = 10};
    masked.mask.assign(70, 0);
    const AttentionResult<float> none = run_attention(masked, draw_attention<float>(masked));
    REQUIRE((all_zero(none.y) && all_zero(none.dq) && all_zero(none.dkv)));

    // More queries than keys: the first 60 see nothing.
    AttentionCase c{.batch = 1, .queries = 100, .keys = 40, .heads = 1, .head_size = 10, .causal = true};
    AttentionInputs<float> in = draw_attention<float>(c);
    const AttentionResult<float> clean = run_attention(c, in);
    for (std::size_t i = 0; i < 100 * 10; ++i) REQUIRE((clean.y[i] == 0) == (i < 600));
    for (std::size_t i = 0; i < 600; ++i) REQUIRE(clean.dq[i] == 0);
    for (std::size_t i = 0; i < 600; ++i) in.q[i] = in.dy[i] = std::numeric_limits<float>::quiet_NaN();
    const AttentionResult<float> corrupted = run_attention(c, in);
    REQUIRE(corrupted.y == clean.y);
    REQUIRE(corrupted.dkv == clean.dkv);
  });
}

TEST_CASE("attention: a row of scores of −Inf is NaN, and among finite scores −Inf has no weight") {
  on_every_target([] {
    AttentionCase c{.batch = 1, .queries = 1, .keys = 70, .heads = 1, .head_size = 1};
    AttentionInputs<double> in = draw_attention<double>(c);
    in.q[0] = 1;
    for (std::size_t s = 0; s < 70; ++s) in.kv[2 * s] = -std::numeric_limits<double>::infinity();
    REQUIRE(std::isnan(run_attention(c, in).y[0]));
    in.kv[0] = 0;
    REQUIRE(run_attention(c, in).y[0] == in.kv[1]);
  });
}

TEST_CASE("attention: large scores and large means cost no precision") {
  on_every_target([] {
    AttentionCase c{.batch = 2, .queries = 80, .keys = 80, .heads = 2, .head_size = 32, .causal = true, .scale = 0.2};
    for (const double mean : {1.0, 3.0, 10.0}) {
      AttentionInputs<float> in = draw_attention<float>(c, mean);
      in.dy = draw_attention<float>(c).dy;
      const AttentionResult<double> wanted = reference_attention(c, widened(in));
      INFO("mean " << mean);
      require_close(run_attention(c, widened(in)), wanted, 1e-11);
      const AttentionResult<float> found = run_attention(c, in);
      REQUIRE(relative(found.y, wanted.y, 0) < 5e-7);
      // A weight is as exact as its score, which is 640 at mean 10. Without fused multiply-adds every product is
      // rounded.
      const bool fused = kernels::target() != "sse4" && kernels::target() != "floor";
      REQUIRE(relative(found.dkv, wanted.dkv, 0) < (fused ? 1.2e-6 : 1.5e-6) * mean);
      // dq is Σ ds k with Σ ds = 0, which is small compared with its terms: the error is 2e-5 at mean 10, and 3e-4 if
      // no origin is subtracted from the keys.
      REQUIRE(relative(found.dq, wanted.dq, 0) < 4e-6 * mean);
    }
    AttentionInputs<double> sharp = draw_attention<double>(c);
    for (double& x : sharp.q) x *= 1e4;  // weights are 0 or 1 almost everywhere
    const AttentionResult<double> a = run_attention(c, sharp), b = reference_attention(c, sharp);
    REQUIRE(relative(a.y, b.y, 0.01) < 1e-10);
  });
}

TEST_CASE("attention: gradients are added to existing ones") {
  on_every_target([] {
    AttentionCase c{.batch = 2, .queries = 30, .keys = 75, .heads = 2, .head_size = 11};
    for (std::int64_t i = 0; i < c.batch * c.keys; ++i) c.mask.push_back(i % 3 != 0);
    const AttentionInputs<double> in = draw_attention<double>(c);
    const AttentionResult<double> once = run_attention(c, in), twice = run_attention(c, in, &once);
    for (std::size_t i = 0; i < once.dq.size(); ++i) REQUIRE(twice.dq[i] == 2 * once.dq[i]);
    for (std::size_t i = 0; i < once.dkv.size(); ++i) REQUIRE(twice.dkv[i] == 2 * once.dkv[i]);
  });
}
