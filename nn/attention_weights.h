// The attention weights of a forward pass, for pictures and for tests. The ops attention() and linear_attention() store
// no weights; here they are recomputed, one number after the other in float64, from the queries and keys that the ops
// got. Models need no hooks for it: the tape tells its observer about every op.
//
// Shapes: B sequences, H heads, T queries, S keys, heads of D columns of values and of F columns of queries and keys (F
// = D, except for the features of linear attention). Keys and values have K heads; K = H unless heads share them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "autograd/tensor.h"

namespace maki {

/// What one call of an attention op got, and what it returned, as float64.
struct ObservedAttention {
  bool linear = false;  ///< whether it was linear_attention(), whose queries and keys are features
  Tensor q, k, v;       ///< [B, T, H·F], [B, S, K·F], [B, S, K·D]
  Tensor y;             ///< [B, T, H·D]
};

/// Runs `forward` without recording it (Observing) and returns the calls of attention() and linear_attention(), in
/// their order; those of relative_attention() are not seen. `heads_per_kv_head` is H / K, the same for all calls of
/// attention() with packed q‖k‖v. Throws Error if it is below 1, and whatever `forward` throws.
std::vector<ObservedAttention> observe_attention(const std::function<void()>& forward,
                                                 std::int64_t heads_per_kv_head = 1);

/// The options of the ops that are not among their tensors. Masks, and a scale other than 1/√D, cannot be given.
struct WeightOptions {
  std::int64_t n_head = 1;
  bool causal = false;  ///< query t attends only to keys 0 … t + S − T
  double floor = 0;     ///< LinearAttention::floor
};

/// The weights [B, H, T, S], float64: softmax(q·k / √D), or φ(q)·φ(k) / max(Σ φ(q)·φ(k), floor) if attention is linear;
/// 0 at keys that a query does not attend to. Throws Error unless n_head divides the widths of q and y and is a
/// multiple of H / K.
Tensor attention_weights(const ObservedAttention& observed, const WeightOptions& options);

/// Σ_s weights[…, t, s] · v_s [B, T, H·D], float64: what the op returned, if the weights are those that it used.
Tensor weighted_values(const Tensor& weights, const ObservedAttention& observed);

/// The largest distance of weighted_values() from the result of the op, as a share of the largest |v| (not divided if
/// all v are 0); NaN if any of these numbers is.
double weights_error(const Tensor& weights, const ObservedAttention& observed);

}  // namespace maki
