// The decoder of the Transformer: the right half of figure 1 of Vaswani et al. 2017, arXiv:1706.03762. Section numbers
// refer to that paper. Shapes: B sequences of T target and S source tokens, of width C = n_embd, with H = n_head heads.
//
// Thread safety and lifetime: the same as for layers (nn/layers.h). A cache must be used by one thread at a time.
#pragma once

#include "nn/transformer.h"

namespace maki {

/// What one decoder block needs of an encoded source: its keys and values, and which of them are padding.
struct CrossKeys {
  Tensor kv;             ///< k‖v [B, S, 2C]: CrossAttention::keys_values() of the encoder's output
  Tensor key_mask = {};  ///< [B, S] int32, 0 at padding; empty: there is none
};

/// Multi-head attention whose queries come from the decoder and whose keys and values come from the encoder:
/// c_proj(attention(c_q(x), c_kv(memory))), [B, T, C] → [B, T, C]. Section 3.2.3.
struct CrossAttention {
  /// Throws Error unless n_head divides n_embd. Of the options, `causal`, `n_kv_head`, `rotary`, `qk_norm` and
  /// `conv_width` are not used.
  CrossAttention(const Scope& scope, const BlockOptions& options);

  /// k‖v of the encoder's output: memory [B, S, C] → [B, S, 2C]. Independent of the decoder's tokens, so that
  /// generation computes it once.
  Tensor keys_values(const Tensor& memory) const { return c_kv(memory); }
  Tensor operator()(const Tensor& x, const CrossKeys& source) const;

  Attention options;
  Linear c_q, c_kv, c_proj;
};

/// Masked self-attention, cross-attention, feed-forward, each in a residual connection: [B, T, C] → [B, T, C].
struct DecoderBlock {
  /// Self-attention is causal, whatever the options say, and alone has `qk_norm`; `conv_width` is not used.
  DecoderBlock(const Scope& scope, const BlockOptions& options);

  /// With a cache, x holds the tokens after those in the cache, as in MultiHeadAttention.
  Tensor operator()(const Tensor& x, const CrossKeys& source, KvLayer* cache = nullptr) const {
    const Tensor y = residual(x, ln_1, [&](const Tensor& z) { return attn(z, cache); });
    return residual(residual(y, ln_2, [&](const Tensor& z) { return cross(z, source); }), ln_3, mlp);
  }

  Residual residual;
  Norm ln_1;
  MultiHeadAttention attn;
  Norm ln_2;
  CrossAttention cross;
  Norm ln_3;
  FeedForward mlp;
};

}  // namespace maki
