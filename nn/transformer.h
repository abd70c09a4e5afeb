// The building blocks of a Transformer: Vaswani et al. 2017, arXiv:1706.03762. Section numbers refer to that paper.
// Shapes: B sequences of T tokens of width C = n_embd, H = n_head heads.
//
// Thread safety and lifetime: the same as for layers (nn/layers.h). A cache must be used by one thread at a time.
#pragma once

#include <memory>
#include <optional>

#include "nn/short_conv.h"
#include "nn/transformer_config.h"

namespace maki {

class KvLayer;

/// How the weights of projections are drawn.
enum class Init : std::uint8_t {
  gpt2,   ///< from N(0, 0.02²), those that end in the residual path from N(0, projection_std²)
  xavier  ///< from N(0, 2 / (in + out)); q‖k‖v is one matrix, gate and up are two: Glorot and Bengio 2010
};

/// The options of the blocks of one model: those of its configuration, and what the model itself decides.
struct BlockOptions : TransformerConfig {
  bool causal = true;
  /// Of the initial weights of the two projections that end in the residual path; only for Init::gpt2.
  double projection_std = kInitStd;
  Init init = Init::gpt2;
  /// rotary_angles() of the model's heads, which rotate queries and keys; null: positions are elsewhere.
  std::shared_ptr<const PositionTable> rotary = nullptr;

  /// The initial weights [out, in] of a projection, with standard deviation `gpt2` for Init::gpt2.
  Initializer initial_weights(std::int64_t in, std::int64_t out, double gpt2 = kInitStd) const;
  /// The initial weights [out, in] of a projection that ends in the residual path.
  Initializer initial_residual_weights(std::int64_t in, std::int64_t out) const;
};
/// Throws Error, if positions are rotary, for a position_base that is not above 1 and for heads of an odd number of
/// columns.
BlockOptions block_options(const TransformerConfig& config, DType dtype, bool causal = true, Init init = Init::gpt2);

/// A residual connection: x + f(norm(x)), or norm(x + f(x)) in post-norm order, with dropout on the output of f.
struct Residual {
  explicit Residual(const BlockOptions& options) : order(options.norm_order), drop{options.dropout} {}

  /// f maps [B, T, C] to [B, T, C].
  template <class F>
  Tensor operator()(const Tensor& x, const Norm& norm, const F& f) const {
    if (order == NormOrder::pre) return add(x, drop(f(norm(x))));
    return norm(add(x, drop(f(x))));
  }

  NormOrder order;
  Dropout drop;
};

/// Elements that the ops of a Block save per token for backward: two norms (2C), packed projections (C and twice the
/// width of keys), attention (C), the hidden layer with its derivative or gate‖up (relu keeps only its value), two
/// residual sums (2C), what qk_norm (q‖k‖v) and convolutions (2C) read, and a few numbers for heads and norms.
std::int64_t saved_by_block(const TransformerConfig& config);
/// Elements per token of the gradients that are alive at the same time in the backward pass of a feed-forward network:
/// of its hidden layer before and after the activation, and of the residual.
std::int64_t passing_in_block(const TransformerConfig& config);
/// Elements per token that all blocks save, with what stands around them (embeddings and final norm), and those of the
/// gradients that are alive at the same time. See Model::activation_bytes().
std::int64_t activations_per_token(const TransformerConfig& config);

/// Multi-head self-attention: c_proj(attention(c_attn(x))), [B, T, C] → [B, T, C]. c_attn computes q‖k‖v, [B, T, 3C];
/// head h is columns h·C/H … (h+1)·C/H of each. Section 3.2.2. With fewer heads of keys and values (n_kv_head = K), k
/// and v have K·C/H columns each. With qk_norm, q and k are normalized; with rotary positions, they are then rotated. A
/// cache holds keys after both.
struct MultiHeadAttention {
  /// Throws Error unless n_head divides n_embd, and n_kv_head is 0 or divides n_head.
  MultiHeadAttention(const Scope& scope, const BlockOptions& options);
  /// With a cache, x holds the tokens after those in the cache, and their keys and values are appended to it. key_mask
  /// [B, S] int32 is 0 at the tokens that must not be attended to, such as padding; S is T, or with a cache the number
  /// of tokens that it then holds. Empty: every token may be attended to. A token that is masked out still has an
  /// output, but a meaningless one: its target should be CrossEntropy::ignored. mask [T, S] or [B, T, S] int32 is 0
  /// where a token must not attend to another: packed documents, a prefix that is read in both directions (not with
  /// `causal`, which holds beside the mask). Throws Error, with a cache, if it has no room and inside a Recording.
  Tensor operator()(const Tensor& x, KvLayer* cache = nullptr, const Tensor& key_mask = {},
                    const Tensor& mask = {}) const;
  /// The projections q‖k‖v of tokens at positions first, first + 1, …, normalized and rotated as the options say: [B,
  /// T, C] → [B, T, qkv_width()].
  Tensor project(const Tensor& x, std::int64_t first) const;

  Attention options;
  std::shared_ptr<const PositionTable> rotary;
  Linear c_attn;
  Parameter* qk_norm;  // gains of the columns of q‖k; or null
  Linear c_proj;
};

/// Position-wise feed-forward network: c_proj(activation(c_fc(x))), [… C] → [… C]. c_fc is [F, C], or for swiglu
/// gate‖up [2F, C], where F is hidden_width() of the options. Section 3.3.
struct FeedForward {
  FeedForward(const Scope& scope, const BlockOptions& options);
  Tensor operator()(const Tensor& x) const { return feed_forward(x, c_fc, activation, c_proj); }

  Activation activation;
  Linear c_fc, c_proj;
};

/// Attention, then feed-forward, each in a residual connection and, with a conv_width, after a short convolution, which
/// is causal if attention is: [B, T, C] → [B, T, C]. The left half of figure 1.
struct Block {
  Block(const Scope& scope, const BlockOptions& options);
  /// The cache and the masks are those of MultiHeadAttention.
  Tensor operator()(const Tensor& x, KvLayer* cache = nullptr, const Tensor& key_mask = {},
                    const Tensor& mask = {}) const;
  /// The block with attend(y) instead of attn(y), both [B, T, C] → [B, T, C]. `recent`, if not null, are the inputs of
  /// convolutions that generation keeps; `key_mask` is that of MultiHeadAttention.
  template <class Attend>
  Tensor with_attention(const Tensor& x, const Attend& attend, RecentInputs* recent = nullptr,
                        const Tensor& key_mask = {}) const {
    Tensor* const before_attn = recent != nullptr ? &recent->attention : nullptr;
    Tensor* const before_mlp = recent != nullptr ? &recent->feed_forward : nullptr;
    const auto seen = [&](const Tensor& z) { return without_padding(z, key_mask); };
    const Tensor y = residual(x, ln_1, [&](const Tensor& z) { return after(conv_1, seen(z), attend, before_attn); });
    return residual(y, ln_2, [&](const Tensor& z) { return after(conv_2, seen(z), mlp, before_mlp); });
  }

  Residual residual;
  Norm ln_1;
  std::optional<ShortConv> conv_1;
  MultiHeadAttention attn;
  Norm ln_2;
  std::optional<ShortConv> conv_2;
  FeedForward mlp;

 private:
  // x with 0 instead of padding, if convolutions would carry it to tokens before it.
  Tensor without_padding(const Tensor& x, const Tensor& key_mask) const;
  // f(conv(x)), or f(x) without a convolution. `recent` is that of ShortConv; if f throws, it stays as it was.
  template <class F>
  static Tensor after(const std::optional<ShortConv>& conv, const Tensor& x, const F& f, Tensor* recent) {
    if (!conv) return f(x);
    Tensor read = recent != nullptr ? *recent : Tensor();
    Tensor y = f((*conv)(x, recent != nullptr ? &read : nullptr));
    if (recent != nullptr) *recent = read;
    return y;
  }
};

}  // namespace maki
