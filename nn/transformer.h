// The Transformer's parts: Vaswani et al. 2017, arXiv:1706.03762. Shapes: B sequences, T tokens, C wide, H heads.
#pragma once

#include "nn/layers.h"

namespace maki {

class KvLayer;

enum class NormOrder : std::uint8_t {
  pre,  ///< x + f(norm(x)): GPT-2; Xiong et al. 2020, arXiv:2002.04745
  post  ///< norm(x + f(x)): the original
};

/// What the blocks of one model have in common.
struct BlockOptions {
  std::int64_t n_embd = 0, n_head = 1;
  bool causal = true, bias = true;
  double dropout = 0;  ///< of the attention weights and of what each residual branch adds
  Activation activation = Activation::gelu;
  NormOrder norm = NormOrder::pre;
  double projection_std = kInitStd;  ///< of the two projections that end in the residual path
};

/// Multi-head self-attention: c_proj(attention(c_attn(x))), [B, T, C] → [B, T, C]. c_attn makes q‖k‖v, [B, T, 3C]; head
/// h is columns h·C/H … (h+1)·C/H of each. Section 3.2.2.
struct MultiHeadAttention {
  MultiHeadAttention(const Scope& scope, const BlockOptions& options);
  /// With a cache, x are the tokens after those the cache holds; they are added to it.
  Tensor operator()(const Tensor& x, KvLayer* cache = nullptr) const;

  Attention options;
  Linear c_attn, c_proj;
};

/// Position-wise feed-forward network, four times as wide inside: c_proj(activation(c_fc(x))), [… C] → [… C]. Section
/// 3.3.
struct FeedForward {
  FeedForward(const Scope& scope, const BlockOptions& options);
  Tensor operator()(const Tensor& x) const { return c_proj(activate(x, c_fc, activation)); }

  Activation activation;
  Linear c_fc, c_proj;
};

/// Attention, then feed-forward, each in a residual connection: [B, T, C] → [B, T, C]. Figure 1, left, without its
/// names.
struct Block {
  Block(const Scope& scope, const BlockOptions& options);
  Tensor operator()(const Tensor& x, KvLayer* cache = nullptr) const {
    const auto attend = [&](const Tensor& y) { return attn(y, cache); };
    return residual(residual(x, ln_1, attend), ln_2, mlp);
  }

  /// One residual connection around any f from [B, T, C] to [B, T, C].
  template <class F>
  Tensor residual(const Tensor& x, const LayerNorm& norm, const F& f) const {
    if (order == NormOrder::pre) return add(x, drop(f(norm(x))));
    return norm(add(x, drop(f(x))));
  }

  NormOrder order;
  LayerNorm ln_1;
  MultiHeadAttention attn;
  LayerNorm ln_2;
  FeedForward mlp;
  Dropout drop;
};

/// Sinusoidal positions [T, C]: columns 2i and 2i+1 hold sin and cos of t / base^(2i/C). Section 3.5, where the base is
/// 10000. Throws unless base > 1.
Tensor sinusoidal_positions(std::int64_t length, std::int64_t n_embd, double base, DType dtype);

}  // namespace maki
