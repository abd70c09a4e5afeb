// The building blocks of a Transformer: Vaswani et al. 2017, arXiv:1706.03762. Section numbers refer to that paper.
// Shapes: B sequences of T tokens of width C = n_embd, H = n_head heads.
//
// Thread safety and lifetime: the same as for layers (nn/layers.h). A cache must be used by one thread at a time.
#pragma once

#include <memory>

#include "nn/layers.h"
#include "nn/positions.h"

namespace maki {

class KvLayer;

/// Where a residual connection around f applies its norm.
enum class NormOrder : std::uint8_t {
  pre,  ///< x + f(norm(x)): GPT-2; Xiong et al. 2020, arXiv:2002.04745
  post  ///< norm(x + f(x)): the original Transformer
};
inline constexpr std::array kNormOrders = {NormOrder::pre, NormOrder::post};
/// "pre" or "post".
const char* to_string(NormOrder order);
/// The inverse of to_string(). Throws Error, suggesting the most similar name, for any other word.
NormOrder norm_order_named(std::string_view name);

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
  NormOrder norm_order = NormOrder::pre;
  NormKind norm = NormKind::layer;
  double projection_std = kInitStd;  ///< of the initial weights of the two projections that end in the residual path
  Init init = Init::gpt2;

  /// The standard deviation of the initial weights [out, in] of a projection; `gpt2` is its value for Init::gpt2.
  double init_std(std::int64_t in, std::int64_t out, double gpt2) const;
  /// rotary_angles() of the model's heads, which rotate queries and keys; null: positions are elsewhere.
  std::shared_ptr<const PositionTable> rotary = nullptr;
};

/// How many parameters a Block, and each of its norms, has with these options.
std::int64_t block_parameter_count(const BlockOptions& options);
std::int64_t norm_parameter_count(const BlockOptions& options);

/// Multi-head self-attention: c_proj(attention(c_attn(x))), [B, T, C] → [B, T, C]. c_attn computes q‖k‖v, [B, T, 3C];
/// head h is columns h·C/H … (h+1)·C/H of each. Section 3.2.2. With rotary positions, q and k are rotated before they
/// meet, and a cache holds rotated keys.
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
  /// The projections q‖k‖v of tokens at positions first, first + 1, …, rotated if positions are: [B, T, C] → [B, T,
  /// 3C].
  Tensor project(const Tensor& x, std::int64_t first) const;

  Attention options;
  std::shared_ptr<const PositionTable> rotary;
  Linear c_attn, c_proj;
};

/// The hidden width F of a feed-forward network: 4C, or for swiglu 8C/3, rounded up to a multiple of 16, so that its
/// three matrices have as many weights as the two of the others. Shazeer 2020, arXiv:2002.05202, section 3.
std::int64_t feed_forward_width(std::int64_t n_embd, Activation activation);

/// Position-wise feed-forward network: c_proj(activation(c_fc(x))), [… C] → [… C]. c_fc is [F, C], or for swiglu
/// gate‖up [2F, C], where F is feed_forward_width(). Section 3.3.
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
    return with_attention(x, [&](const Tensor& y) { return attn(y, cache, key_mask, mask); });
  }
  /// The block with attend(y) in place of attn(y), both [B, T, C] → [B, T, C].
  template <class Attend>
  Tensor with_attention(const Tensor& x, const Attend& attend) const {
    return residual(residual(x, ln_1, attend), ln_2, mlp);
  }

  /// A residual connection around f, which maps [B, T, C] to [B, T, C].
  template <class F>
  Tensor residual(const Tensor& x, const Norm& norm, const F& f) const {
    if (order == NormOrder::pre) return add(x, drop(f(norm(x))));
    return norm(add(x, drop(f(x))));
  }

  NormOrder order;
  Norm ln_1;
  MultiHeadAttention attn;
  Norm ln_2;
  FeedForward mlp;
  Dropout drop;
};

}  // namespace maki
