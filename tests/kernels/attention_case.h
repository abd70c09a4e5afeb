// One problem of attention for the tests: random packed inputs, the kernels' answer, and a plain reference (explicit
// weights, float64) to compare with.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "autograd/kernels/attention.h"

namespace maki::tests {

struct AttentionCase {
  std::int64_t batch = 1, queries = 1, keys = 1, heads = 1, head_size = 1;
  bool causal = false;
  double scale = 1, dropout = 0;
  std::vector<std::int32_t> mask = {};  // [B, S] or nothing
  std::uint64_t seed = 0;

  std::int64_t width() const { return heads * head_size; }
  bool sees(std::int64_t b, std::int64_t t, std::int64_t s) const {
    return (!causal || s <= t + keys - queries) && (mask.empty() || mask[static_cast<std::size_t>(b * keys + s)] != 0);
  }
};

/// q [B, T, C], kv [B, S, 2C], dy [B, T, C].
template <class T>
struct AttentionInputs {
  std::vector<T> q, kv, dy;
};
template <class T>
struct AttentionResult {
  std::vector<T> y, lse, dq, dkv;
};

/// Which gradients are added to what is there; the others are written.
struct AttentionAdds {
  bool dq = true, dk = true, dv = true;
};

template <class T>
AttentionInputs<T> draw_attention(const AttentionCase& c, double mean = 0);
/// Outputs hold NaN beforehand, but for the gradients that `adds` names if `add` gives what they are to be added to.
/// Without dy: forward alone.
template <class T>
AttentionResult<T> run_attention(const AttentionCase& c, const AttentionInputs<T>& in,
                                 const AttentionResult<T>* add = nullptr, const AttentionAdds& adds = {});
AttentionResult<double> reference_attention(const AttentionCase& c, const AttentionInputs<double>& in);

}  // namespace maki::tests
