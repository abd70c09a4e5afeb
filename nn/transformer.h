// The building blocks of a Transformer: Vaswani et al. 2017, arXiv:1706.03762. Section numbers refer to that paper.
// Shapes: B sequences of T tokens of width C = n_embd, H = n_head heads.
//
// Thread safety and lifetime: the same as for layers (nn/layers.h). A cache must be used by one thread at a time.
#pragma once

#include "nn/layers.h"

namespace maki {

class KvLayer;

/// Where a residual connection around f applies its layer norm.
enum class NormOrder : std::uint8_t {
  pre,  ///< x + f(norm(x)): GPT-2; Xiong et al. 2020, arXiv:2002.04745
  post  ///< norm(x + f(x)): the original Transformer
};

/// How the weights of projections are drawn.
enum class Init : std::uint8_t {
  gpt2,   ///< from N(0, 0.02²), those that end in the residual path from N(0, projection_std²)
  xavier  ///< from N(0, 2 / (in + out)), where q, k and v count as one matrix [3C, C]: Glorot and Bengio 2010
};

/// The options of the blocks of one model.
struct BlockOptions {
  std::int64_t n_embd = 0, n_head = 1;
  bool causal = true, bias = true;
  double dropout = 0;  ///< probability, for the attention weights and the outputs of the residual branches
  Activation activation = Activation::gelu;
  NormOrder norm = NormOrder::pre;
  double projection_std = kInitStd;  ///< of the initial weights of the two projections that end in the residual path
  Init init = Init::gpt2;

  /// The standard deviation of the initial weights [out, in] of a projection; `gpt2` is its value for Init::gpt2.
  double init_std(std::int64_t in, std::int64_t out, double gpt2) const;
};

/// Multi-head self-attention: c_proj(attention(c_attn(x))), [B, T, C] → [B, T, C]. c_attn computes q‖k‖v, [B, T, 3C];
/// head h is columns h·C/H … (h+1)·C/H of each. Section 3.2.2.
struct MultiHeadAttention {
  /// Throws Error unless n_head divides n_embd.
  MultiHeadAttention(const Scope& scope, const BlockOptions& options);
  /// With a cache, x holds the tokens after those in the cache, and their keys and values are appended to it. key_mask
  /// [B, S] int32 is 0 at the tokens that must not be attended to, such as padding; S is T, or with a cache the number
  /// of tokens that it then holds. Empty: every token may be attended to. A token that is masked out still has an
  /// output, but a meaningless one: its target should be CrossEntropy::ignored. mask [T, S] or [B, T, S] int32 is 0
  /// where a token must not attend to another: packed documents, a prefix that is read in both directions.
  Tensor operator()(const Tensor& x, KvLayer* cache = nullptr, const Tensor& key_mask = {},
                    const Tensor& mask = {}) const;

  Attention options;
  Linear c_attn, c_proj;
};

/// Position-wise feed-forward network with a hidden width of 4C: c_proj(activation(c_fc(x))), [… C] → [… C].
/// Section 3.3.
struct FeedForward {
  FeedForward(const Scope& scope, const BlockOptions& options);
  Tensor operator()(const Tensor& x) const { return c_proj(activate(x, c_fc, activation)); }

  Activation activation;
  Linear c_fc, c_proj;
};

/// Attention, then feed-forward, each in a residual connection: [B, T, C] → [B, T, C]. The left half of figure 1.
struct Block {
  Block(const Scope& scope, const BlockOptions& options);
  /// The cache and the masks are those of MultiHeadAttention.
  Tensor operator()(const Tensor& x, KvLayer* cache = nullptr, const Tensor& key_mask = {},
                    const Tensor& mask = {}) const {
    const auto attend = [&](const Tensor& y) { return attn(y, cache, key_mask, mask); };
    return residual(residual(x, ln_1, attend), ln_2, mlp);
  }

  /// A residual connection around f, which maps [B, T, C] to [B, T, C].
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

/// Sinusoidal positions [T, C] for T = length: columns 2i and 2i+1 of row t hold the sine and cosine of the angle
/// t / base^(2i/C). Section 3.5, where the base is 10000. Throws Error unless base > 1.
Tensor sinusoidal_positions(std::int64_t length, std::int64_t n_embd, double base, DType dtype);

}  // namespace maki
