// One attention problem for the tests: random packed inputs, the result of the kernels, and a plain reference (explicit
// weights, float64) to compare it with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "autograd/kernels/attention/attention.h"
#include "tests/catch.h"
#include "tests/kernels/targets.h"

namespace maki::tests {

struct AttentionCase {
  std::int64_t batch = 1, queries = 1, keys = 1, heads = 1, head_size = 1;
  bool causal = false;
  double scale = 1, dropout = 0;
  std::vector<std::int32_t> mask = {};  // [B, S] or nothing
  std::uint64_t seed = 0;
  std::int64_t kv_heads = 0;     // 0: heads
  bool rounds_operands = false;  // to bfloat16
  bool wants_dq = true, wants_dkv = true;
  bool wants_lse = true;  // false only without dy

  std::int64_t width() const { return heads * head_size; }
  std::int64_t kv_width() const { return (kv_heads == 0 ? heads : kv_heads) * head_size; }
  std::int64_t share() const { return kv_heads == 0 ? 1 : heads / kv_heads; }
  bool sees(std::int64_t b, std::int64_t t, std::int64_t s) const {
    return (!causal || s <= t + keys - queries) && (mask.empty() || mask[static_cast<std::size_t>(b * keys + s)] != 0);
  }
};

/// q [B, T, C], kv [B, S, 2K], dy [B, T, C], with K = kv_width().
template <class T>
struct AttentionInputs {
  std::vector<T> q, kv, dy;
};
template <class T>
struct AttentionResult {
  std::vector<T> y, lse, dq, dkv;
};

/// Which gradients are added to existing values. The others are overwritten.
struct AttentionAdds {
  bool dq = true, dk = true, dv = true;
};

/// Cases whose early rows (attention.h) see keys of later blocks than the first one.
std::vector<AttentionCase> late_key_cases();

template <class T>
AttentionInputs<T> draw_attention(const AttentionCase& c, double mean = 0);
/// Runs the kernels on outputs that contain NaN beforehand, and requires that they write nothing behind them, nor
/// behind their scratch. If `add` is given, the gradients that `adds` selects contain its values instead and are added
/// to. Without dy only the forward kernel runs.
template <class T>
AttentionResult<T> run_attention(const AttentionCase& c, const AttentionInputs<T>& in,
                                 const AttentionResult<T>* add = nullptr, const AttentionAdds& adds = {});
AttentionResult<double> reference_attention(const AttentionCase& c, const AttentionInputs<double>& in);

template <class T>
AttentionInputs<double> widened(const AttentionInputs<T>& in) {
  return {{in.q.begin(), in.q.end()}, {in.kv.begin(), in.kv.end()}, {in.dy.begin(), in.dy.end()}};
}

/// The origin that is subtracted from the keys or values, in one column, for row t; key(s) is that of key s: the median
/// of the first seven keys that it sees, or of the first three, or the first key where it sees fewer. The median of
/// seven is replaced by 0 if the middle three differ by more than half of it.
template <class Key>
double attention_origin(const AttentionCase& c, std::int64_t b, std::int64_t t, const Key& key) {
  std::vector<double> seen;
  for (std::int64_t s = 0; s < c.keys && seen.size() < 7; ++s) {
    if (c.sees(b, t, s)) seen.push_back(key(s));
  }
  seen.resize(seen.size() < 3 ? 1 : seen.size() < 7 ? 3 : 7);
  std::sort(seen.begin(), seen.end());
  const double median = seen[seen.size() / 2];
  return seen.size() == 7 && 2 * (seen[4] - seen[2]) > std::abs(median) ? 0 : median;
}

inline double norm_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

/// ‖a − b‖ / max(‖b‖, floor).
template <class T>
double relative(const std::vector<T>& a, const std::vector<double>& b, double floor) {
  REQUIRE(a.size() == b.size());
  double distance = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    distance += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
  }
  return std::sqrt(distance) / std::max(norm_of(b), floor);
}

}  // namespace maki::tests
