// Attention by content and distance, and the Transformer-XL block around it: Dai et al. 2019, arXiv:1901.02860, section
// 3.3. Shapes: B sequences of T tokens of width C = n_embd, after M tokens of memory; S = M + T.
//
// Thread safety and lifetime: the same as for layers (nn/layers.h).
#pragma once

#include <memory>

#include "nn/transformer.h"

namespace maki {

/// Multi-head attention whose scores are q_t·k_s + q_t·r_d + u·k_s + v·r_d, divided by √D, at the distance d of key s
/// before query t: c_proj(relative_attention(c_q(x), c_kv(seen), c_r(R), u, v)). Row d of R is the sinusoidal encoding
/// of distance d. The paper writes W_k,R for c_r. A bias of c_r would add the same number to all scores of a query, so
/// it has none. u and v belong to the layer, as in the code of the paper with `untie_r`.
struct DistanceAttention {
  /// `encodings` are sinusoidal_positions() of width C. Throws Error unless n_head divides n_embd. Of the options,
  /// `causal`, `n_kv_head`, `rotary`, `qk_norm` and `conv_width` are not used: this attention is always causal.
  DistanceAttention(const Scope& scope, const BlockOptions& options, std::shared_ptr<const PositionTable> encodings);

  /// x [B, T, C], seen [B, S, C], of which the last T tokens are x → [B, T, C].
  Tensor operator()(const Tensor& x, const Tensor& seen) const {
    return attend(x, c_kv(seen), distances(seen.shape()[1]), seen.shape()[1]);
  }
  /// Attends from finished projections: k‖v = c_kv(seen) in rows [0, S) of kv [B, S or more, 2C], and distances(S) in
  /// rows [0, S) of r [S or more, C]; S = `keys`.
  Tensor attend(const Tensor& x, const Tensor& kv, const Tensor& r, std::int64_t keys) const;
  /// The projected encodings of distances 0 … count − 1: [count, C].
  Tensor distances(std::int64_t count) const { return c_r(encodings->rows(0, count)); }

  RelativeAttention options;
  std::shared_ptr<const PositionTable> encodings;
  Linear c_q, c_kv, c_r, c_proj;
  Parameter &u, &v;
};

/// Attention over the memory and the tokens themselves, then feed-forward, each in a residual connection: [B, T, C] →
/// [B, T, C].
struct DistanceBlock {
  /// The options that DistanceAttention does not use are not used.
  DistanceBlock(const Scope& scope, const BlockOptions& options, const std::shared_ptr<const PositionTable>& encodings);
  /// memory [B, M, C]: what entered this block for the M tokens before x, detached; an empty handle if there were none.
  Tensor operator()(const Tensor& x, const Tensor& memory) const {
    return with_attention(x, [&](const Tensor& y) { return attn(y, memory ? concat({normed(memory), y}, 1) : y); });
  }
  /// The block with attend(y) instead of attention, where y [B, T, C] is x, or ln_1(x) in pre-norm order.
  template <class Attend>
  Tensor with_attention(const Tensor& x, const Attend& attend) const {
    return residual(residual(x, ln_1, attend), ln_2, mlp);
  }

  Residual residual;
  Norm ln_1;
  DistanceAttention attn;
  Norm ln_2;
  FeedForward mlp;

 private:
  // The memory in the form in which attention reads x: normed in pre-norm order, else as it is.
  Tensor normed(const Tensor& memory) const { return residual.order == NormOrder::pre ? ln_1(memory) : memory; }
};

}  // namespace maki
