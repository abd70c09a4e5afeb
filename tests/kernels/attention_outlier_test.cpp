// Attention in float32 against float64 where one key, value or query is long (has a large norm), where all of them have
// a large common mean, and where both hold. The origin that is subtracted from all keys must help in the second case
// and do no harm in the first.
#include <cmath>

#include "tests/catch.h"
#include "tests/kernels/attention_case.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr double kMaxError = 5e-6;

/// dk (begin = 0) or dv (begin = C) out of dkv [B, S, 2C].
template <class T>
std::vector<T> half_of(const AttentionCase& c, const std::vector<T>& dkv, std::int64_t begin) {
  std::vector<T> half;
  for (std::int64_t row = 0; row < c.batch * c.keys; ++row) {
    const auto from = dkv.begin() + row * 2 * c.width() + begin;
    half.insert(half.end(), from, from + c.width());
  }
  return half;
}

/// The largest relative error of y, dq, dk and dv.
template <class T>
double largest_error(const AttentionCase& c, const AttentionResult<T>& a, const AttentionResult<double>& b) {
  const std::int64_t width = c.width();
  return std::max({relative(a.y, b.y, 1e-30), relative(a.dq, b.dq, 1e-30),
                   relative(half_of(c, a.dkv, 0), half_of(c, b.dkv, 0), 1e-30),
                   relative(half_of(c, a.dkv, width), half_of(c, b.dkv, width), 1e-30)});
}

enum class Part { key, value, query };

/// The row of a token in head 0.
template <class T>
T* row_of(const AttentionCase& c, AttentionInputs<T>& in, Part part, std::int64_t token) {
  if (part == Part::query) return in.q.data() + token * c.width();
  return in.kv.data() + token * 2 * c.width() + (part == Part::value ? c.width() : 0);
}

/// Whether in every row the long key has either all of the weight or none, and whether the long query gives all of its
/// weight to one key. A weight in between would depend on the last digits of a score of size 1e4, and no softmax in
/// float32 has those.
bool is_well_conditioned(const AttentionCase& c, AttentionInputs<float> in, Part part, std::int64_t token) {
  constexpr double kClearMargin = 40;  // e^-40 · 1e4 is below the rounding error of float32
  for (std::int64_t t = 0; t < c.queries && part != Part::value; ++t) {
    double best = -1e30, second = -1e30, own = 0;
    for (std::int64_t s = 0; s < c.keys; ++s) {
      if (!c.sees(0, t, s)) continue;
      double score = 0;
      for (std::int64_t i = 0; i < c.head_size; ++i) {
        score += c.scale * row_of(c, in, Part::query, t)[i] * row_of(c, in, Part::key, s)[i];
      }
      second = std::max(second, std::min(best, score));
      best = std::max(best, score);
      if (s == token) own = score;
    }
    if (part == Part::query && t == token && best - second < kClearMargin) return false;
    if (part == Part::key && c.sees(0, t, token) && std::abs(own - (own == best ? second : best)) < kClearMargin)
      return false;
  }
  return true;
}

/// Inputs whose row at `token` has length 1e4, drawn until the problem is well conditioned.
AttentionInputs<float> draw_outlier(AttentionCase c, Part part, std::int64_t token) {
  for (c.seed = 0; c.seed < 200; ++c.seed) {
    AttentionInputs<float> in = draw_attention<float>(c);
    float* const row = row_of(c, in, part, token);
    double length = 0;
    for (std::int64_t i = 0; i < c.head_size; ++i) length += static_cast<double>(row[i]) * row[i];
    for (std::int64_t i = 0; i < c.head_size; ++i) row[i] *= static_cast<float>(1e4 / std::sqrt(length));
    if (is_well_conditioned(c, in, part, token)) return in;
  }
  FAIL("no well-conditioned case found");
  return {};
}

void require_accurate(const AttentionCase& c, const AttentionInputs<float>& in) {
  const AttentionResult<double> wanted = reference_attention(c, widened(in));
  on_every_target([&] {
    const AttentionResult<float> found = run_attention(c, in);
    CAPTURE(relative(found.y, wanted.y, 1e-30), relative(found.dq, wanted.dq, 1e-30));
    CHECK(largest_error(c, found, wanted) < kMaxError);
  });
}

}  // namespace

TEST_CASE("attention: one long key, value or query at any position costs the others no precision") {
  const AttentionCase causal{.queries = 72, .keys = 72, .heads = 1, .head_size = 32, .causal = true, .scale = 0.2};
  AttentionCase masked = causal;
  for (std::int64_t s = 0; s < masked.keys; ++s) masked.mask.push_back(s % 3 != 1);
  AttentionCase full = causal;
  full.causal = false;
  for (const Part part : {Part::key, Part::value, Part::query}) {
    for (const std::int64_t token : {0, 1, 2, 3, 5, 6, 7, 8, 40, 63, 64, 71}) {
      INFO("token " << token << (part == Part::key ? ", key" : part == Part::value ? ", value" : ", query"));
      require_accurate(causal, draw_outlier(causal, part, token));
      if (token % 3 == 0) require_accurate(masked, draw_outlier(masked, part, token));
      if (token % 8 == 0) require_accurate(full, draw_outlier(full, part, token));
    }
  }
}

TEST_CASE("attention: a common mean of the rows costs no precision, with and without a long key") {
  // As in the drivers over all ops, scores have a moderate spread: 10 · std² · √D.
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const AttentionCase c{
        .queries = 72, .keys = 72, .heads = 1, .head_size = 32, .causal = true, .scale = 0.2, .seed = seed};
    AttentionInputs<float> in = draw_attention<float>(c, 10);
    in.dy = draw_attention<float>(c).dy;
    for (std::vector<float>* const x : {&in.q, &in.kv}) {
      for (float& value : *x) value *= 0.1f;
    }
    INFO("seed " << seed);
    require_accurate(c, in);
    for (const std::int64_t token : {0, 1, 2, 3, 6, 7, 40}) {
      INFO("long key " << token);
      // The long key points away from the queries, so only a query that sees no other key gives it weight.
      AttentionInputs<float> corrupted = in;
      for (std::int64_t i = 0; i < c.head_size; ++i) row_of(c, corrupted, Part::key, token)[i] *= -1000;
      require_accurate(c, corrupted);
    }
  }
}

TEST_CASE("attention: long keys that are the majority of the first seven cost the others no precision") {
  for (const std::int64_t outliers : {2, 3, 4}) {
    const AttentionCase c{.queries = 40, .keys = 40, .heads = 1, .head_size = 32, .scale = 0.2, .seed = 3};
    AttentionInputs<float> in = draw_attention<float>(c);
    // The long keys point away from every query, so they get no weight.
    for (std::int64_t t = 0; t < c.queries; ++t) {
      float* const q = row_of(c, in, Part::query, t);
      q[0] = 1 + std::abs(q[0]);
    }
    for (std::int64_t token = 0; token < outliers; ++token) {
      float* const key = row_of(c, in, Part::key, token);
      for (std::int64_t i = 0; i < c.head_size; ++i) key[i] -= i == 0 ? 1e4f : 0;
      for (std::int64_t i = 1; i < c.head_size; ++i) key[i] += 1000;
    }
    for (std::int64_t t = 0; t < c.queries; ++t) {
      float* const q = row_of(c, in, Part::query, t);
      for (std::int64_t i = 1; i < c.head_size; ++i) q[i] = std::min(q[i], -q[i]);
    }
    INFO(outliers << " long keys");
    require_accurate(c, in);
  }
}
