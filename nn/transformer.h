// The Transformer's parts: Vaswani et al. 2017, arXiv:1706.03762. Shapes: B sequences, T tokens, C wide, H heads.
#pragma once

#include "nn/layers.h"

namespace maki {

/// Multi-head self-attention: c_proj(attention(c_attn(x))). c_attn makes q‖k‖v, [B, T, 3C]; head h is columns h·C/H …
/// of each. Section 3.2.2.
struct MultiHeadAttention {
  MultiHeadAttention(const Scope& scope, std::int64_t width, std::int64_t n_head, bool causal, bool bias,
                     double dropout, double projection_std);
  Tensor operator()(const Tensor& x) const;

  std::int64_t n_embd;
  Attention options;
  Linear c_attn, c_proj;
};

/// Position-wise feed-forward network, four times as wide inside: c_proj(activation(c_fc(x))). Section 3.3.
struct FeedForward {
  FeedForward(const Scope& scope, std::int64_t n_embd, Activation kind, bool bias, double projection_std);
  Tensor operator()(const Tensor& x) const { return c_proj(activate(c_fc(x), activation)); }

  Activation activation;
  Linear c_fc, c_proj;
};

enum class NormOrder : std::uint8_t {
  pre,  ///< x + f(norm(x)): GPT-2; Xiong et al. 2020, arXiv:2002.04745
  post  ///< norm(x + f(x)): the original
};

struct BlockOptions {
  std::int64_t n_embd = 0, n_head = 1;
  bool causal = true, bias = true;
  double dropout = 0;
  Activation activation = Activation::gelu;
  NormOrder norm = NormOrder::pre;
  double projection_std = kInitStd;  ///< of the two projections that end in the residual path
};

/// Attention and feed-forward, each in a residual connection.
struct Block {
  Block(const Scope& scope, const BlockOptions& options);
  Tensor operator()(const Tensor& x) const { return residual(residual(x, ln_1, attn), ln_2, mlp); }

  /// One residual connection around any f: [B, T, C] → [B, T, C].
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

/// Sinusoidal positions [T, C]: columns 2i and 2i+1 hold sin and cos of t / base^(2i/C). Section 3.5.
Tensor sinusoidal_positions(std::int64_t length, std::int64_t n_embd, double base, DType dtype);

}  // namespace maki
