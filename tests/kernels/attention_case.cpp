#include "tests/kernels/attention_case.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/gemm_case.h"

namespace maki::tests {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

kernels::AttentionShape shape_of(const AttentionCase& c, const RandomStream& stream) {
  return {.batch = c.batch,
          .queries = c.queries,
          .keys = c.keys,
          .heads = c.heads,
          .head_size = c.head_size,
          .kv_heads = c.kv_heads,
          .causal = c.causal,
          .rounds_operands = c.rounds_operands,
          .scale = c.scale,
          .key_mask = c.mask.empty() ? nullptr : c.mask.data(),
          .dropout_stream = c.dropout > 0 ? &stream : nullptr,
          .dropout = c.dropout};
}

RandomStream dropout_stream(const AttentionCase& c) { return {c.seed, RandomPurpose::dropout}; }

// Numbers behind an output.
constexpr std::ptrdiff_t kGuardSize = 16;
template <class T>
void add_guard(std::vector<T>& x) {
  x.insert(x.end(), kGuardSize, T{-7});
}
template <class T>
void take_guard(std::vector<T>& x) {
  REQUIRE(std::count(x.end() - kGuardSize, x.end(), T{-7}) == kGuardSize);
  x.erase(x.end() - kGuardSize, x.end());
}

// Calls body(scratch) with `size` elements of NaN.
template <class T, class Body>
void with_scratch(std::int64_t size, const Body& body) {
  kernels::Scratch<T> scratch(size * static_cast<std::int64_t>(sizeof(T)));
  body(scratch.data());
  REQUIRE(scratch.guard_is_intact());
}

}  // namespace

std::vector<AttentionCase> late_key_cases() {
  std::vector<AttentionCase> cases = {
      {.queries = 100, .keys = 100, .heads = 2, .head_size = 20, .causal = true},
      {.batch = 2, .queries = 70, .keys = 200, .heads = 2, .head_size = 17, .causal = true, .dropout = 0.3},
      {.queries = 90, .keys = 200, .heads = 2, .head_size = 8},
  };
  for (std::int64_t s = 0; s < 100; ++s) cases[0].mask.push_back(s >= 61);
  for (std::int64_t s = 0; s < 400; ++s) cases[1].mask.push_back(s < 200 ? s >= 150 : s >= 390);
  for (std::int64_t s = 0; s < 200; ++s) cases[2].mask.push_back(s == 70 || s == 71 || s == 140 || s == 199);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].scale = 0.3;
    cases[i].seed = 100 + i;
  }
  return cases;
}

template <class T>
AttentionInputs<T> draw_attention(const AttentionCase& c, double mean) {
  AttentionInputs<T> in;
  std::uint64_t call = 0;
  const auto fill = [&](std::vector<T>& x, std::int64_t n) {
    const RandomStream stream(c.seed, RandomPurpose::test, ++call);
    x.reserve(at(n + 1));  // so that data() is not null if n is 0
    for (std::int64_t i = 0; i < n; ++i) {
      x.push_back(static_cast<T>(static_cast<float>(mean + stream.normal(static_cast<std::uint64_t>(i)))));
    }
  };
  fill(in.q, c.batch * c.queries * c.width());
  fill(in.kv, c.batch * c.keys * 2 * c.kv_width());
  fill(in.dy, c.batch * c.queries * c.width());
  return in;
}

template <class T>
AttentionResult<T> run_attention(const AttentionCase& c, const AttentionInputs<T>& in, const AttentionResult<T>* add,
                                 const AttentionAdds& adds) {
  const RandomStream stream = dropout_stream(c);
  const kernels::AttentionShape shape = shape_of(c, stream);
  const std::int64_t width = c.width(), kv_width = c.kv_width();
  const T nan = std::numeric_limits<T>::quiet_NaN();
  AttentionResult<T> out{std::vector<T>(in.q.size(), nan), std::vector<T>(at(c.batch * c.heads * c.queries), nan),
                         std::vector<T>(in.q.size(), nan), std::vector<T>(in.kv.size(), nan)};
  const bool add_dq = add != nullptr && adds.dq, add_dk = add != nullptr && adds.dk, add_dv = add != nullptr && adds.dv;
  if (add_dq) out.dq = add->dq;
  for (std::int64_t i = 0; i < c.batch * c.keys * 2 * kv_width; ++i) {
    if (i % (2 * kv_width) < kv_width ? add_dk : add_dv) out.dkv[at(i)] = add->dkv[at(i)];
  }
  for (std::vector<T>* const x : {&out.y, &out.lse, &out.dq, &out.dkv}) add_guard(*x);
  const auto rows = [&](auto* data, std::int64_t tokens, std::int64_t columns) {
    using Element = std::remove_pointer_t<decltype(data)>;
    return kernels::HeadRows<Element>{data, columns, tokens * columns};
  };
  const auto q = rows(in.q.data(), c.queries, width), dy = rows(in.dy.data(), c.queries, width);
  const auto k = rows(in.kv.data(), c.keys, 2 * kv_width), v = rows(in.kv.data() + kv_width, c.keys, 2 * kv_width);
  T* const lse = c.wants_lse ? out.lse.data() : nullptr;
  with_scratch<T>(kernels::attention_forward_scratch<T>(shape), [&](T* scratch) {
    kernels::attention_forward<T>(shape, q, k, v, rows(out.y.data(), c.queries, width), lse, scratch);
  });
  if (!in.dy.empty() || c.queries == 0) {
    T *const dq = c.wants_dq ? out.dq.data() : nullptr, *const dk = c.wants_dkv ? out.dkv.data() : nullptr;
    const std::int64_t kv_batch = c.keys * 2 * kv_width;
    with_scratch<T>(kernels::attention_backward_scratch<T>(shape), [&](T* scratch) {
      kernels::attention_backward<T>(shape, q, k, v, rows(static_cast<const T*>(out.y.data()), c.queries, width), dy,
                                     lse, {dq, width, c.queries * width, add_dq}, {dk, 2 * kv_width, kv_batch, add_dk},
                                     {dk == nullptr ? nullptr : dk + kv_width, 2 * kv_width, kv_batch, add_dv},
                                     scratch);
    });
  }
  for (std::vector<T>* const x : {&out.y, &out.lse, &out.dq, &out.dkv}) take_guard(*x);
  return out;
}

AttentionResult<double> reference_attention(const AttentionCase& c, const AttentionInputs<double>& in) {
  const RandomStream stream = dropout_stream(c);
  const auto threshold = static_cast<std::uint32_t>(c.dropout * 0x1p32);
  const std::int64_t width = c.width(), kv_width = c.kv_width(), n = c.head_size;
  AttentionResult<double> out{std::vector<double>(in.q.size()), std::vector<double>(at(c.batch * c.heads * c.queries)),
                              std::vector<double>(in.q.size()), std::vector<double>(in.kv.size())};
  std::vector<double> p(at(c.keys)), keep(at(c.keys)), dp(at(c.keys));
  for (std::int64_t row = 0; row < c.batch * c.heads * c.queries; ++row) {
    const std::int64_t t = row % c.queries, h = row / c.queries % c.heads, b = row / c.queries / c.heads;
    const std::size_t q = at((b * c.queries + t) * width + h * n);
    const auto k = [&](std::int64_t s) { return at((b * c.keys + s) * 2 * kv_width + h / c.share() * n); };
    const auto v = [&](std::int64_t s) { return k(s) + at(kv_width); };
    double max_score = -std::numeric_limits<double>::infinity(), sum = 0, row_sum = 0;
    for (std::int64_t s = 0; s < c.keys; ++s) {
      if (!c.sees(b, t, s)) continue;
      p[at(s)] = 0;
      for (std::int64_t i = 0; i < n; ++i) p[at(s)] += in.q[q + at(i)] * in.kv[k(s) + at(i)];
      p[at(s)] *= c.scale;
      max_score = std::max(max_score, p[at(s)]);
    }
    for (std::int64_t s = 0; s < c.keys; ++s) {
      if (c.sees(b, t, s)) sum += p[at(s)] = std::exp(p[at(s)] - max_score);
    }
    if (sum == 0) continue;
    for (std::int64_t i = 0; i < n; ++i) {  // lse is relative to the score of the origin
      const double x = attention_origin(c, b, t, [&](std::int64_t s) { return in.kv[k(s) + at(i)]; });
      max_score -= c.scale * in.q[q + at(i)] * x;
    }
    out.lse[at(row)] = (max_score + std::log(sum)) / std::log(2.0);
    for (std::int64_t s = 0; s < c.keys; ++s) {
      if (!c.sees(b, t, s)) continue;
      p[at(s)] /= sum;
      const bool dropped = c.dropout > 0 && stream.bits(static_cast<std::uint64_t>(row * c.keys + s)) < threshold;
      keep[at(s)] = dropped ? 0 : 1 / (1 - c.dropout);
      dp[at(s)] = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        out.y[q + at(i)] += p[at(s)] * keep[at(s)] * in.kv[v(s) + at(i)];
        dp[at(s)] += in.dy[q + at(i)] * in.kv[v(s) + at(i)] * keep[at(s)];
        out.dkv[v(s) + at(i)] += p[at(s)] * keep[at(s)] * in.dy[q + at(i)];
      }
      row_sum += p[at(s)] * dp[at(s)];
    }
    for (std::int64_t s = 0; s < c.keys; ++s) {
      if (!c.sees(b, t, s)) continue;
      const double ds = p[at(s)] * (dp[at(s)] - row_sum) * c.scale;
      for (std::int64_t i = 0; i < n; ++i) {
        out.dq[q + at(i)] += ds * in.kv[k(s) + at(i)];
        out.dkv[k(s) + at(i)] += ds * in.q[q + at(i)];
      }
    }
  }
  return out;
}

template AttentionInputs<float> draw_attention(const AttentionCase&, double);
template AttentionInputs<double> draw_attention(const AttentionCase&, double);
template AttentionResult<float> run_attention(const AttentionCase&, const AttentionInputs<float>&,
                                              const AttentionResult<float>*, const AttentionAdds&);
template AttentionResult<double> run_attention(const AttentionCase&, const AttentionInputs<double>&,
                                               const AttentionResult<double>*, const AttentionAdds&);

}  // namespace maki::tests
