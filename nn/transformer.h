// The building blocks of a Transformer: Vaswani et al. 2017, arXiv:1706.03762. Section numbers refer to that paper.
// Shapes: B sequences of T tokens of width C = n_embd, H = n_head heads.
//
// Thread safety and lifetime: the same as for layers (nn/layers.h). A cache must be used by one thread at a time.
#pragma once

#include <memory>
#include <optional>

#include "nn/layers.h"
#include "nn/positions.h"
#include "nn/short_conv.h"

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
  xavier  ///< from N(0, 2 / (in + out)); q‖k‖v is one matrix, gate and up are two: Glorot and Bengio 2010
};

/// Parts of a block that GPT-2 does not have; all are off by default. What each of them brings: docs/learning.md.
struct BlockExtras {
  /// An RMS norm of each head's queries and keys, with a gain for every column, before positions rotate them: scores
  /// then do not grow with the weights. Henry et al. 2020, arXiv:2010.04245; Dehghani et al. 2023, arXiv:2302.05442.
  bool qk_norm = false;
  /// The initial weights of the projections that end in the residual path are 0, so that every block is initially the
  /// identity (in post-norm order, two norms).
  bool zero_projections = false;
  /// Tokens of a ShortConv before attention and before the feed-forward network, counting the token itself, from 2 to
  /// kMaxConvWidth; 0: none.
  std::int64_t conv_width = 0;
  /// Each block after the first begins with x + skip · x0, where x0 is what entered the first one and skip [C] is
  /// learned, initially 0.
  bool input_skip = false;
  /// The values of each block after the first become v + value_gain · v0, where v0 are those of the first one and
  /// value_gain, one number for each column of v, is learned, initially 0. Zhou et al. 2024, arXiv:2410.17897.
  bool value_residual = false;
  /// The output of each branch is multiplied by a learned vector [C], initially 1. Touvron et al. 2021,
  /// arXiv:2103.17239, section 2.
  bool branch_scales = false;

  bool operator==(const BlockExtras&) const = default;
  /// The extras of the first block of a model: without what refers to an earlier block.
  BlockExtras of_first_block() const;
};

/// What the blocks of a model share in one forward pass.
struct BlockContext {
  Tensor first_values = {};  ///< v of the first block, as it is packed in q‖k‖v; empty before that is computed
};

/// The options of the blocks of one model.
struct BlockOptions {
  std::int64_t n_embd = 0, n_head = 1;
  std::int64_t n_kv_head = 0;       ///< heads of keys and values in self-attention, see Attention; 0: n_head
  bool causal = true, bias = true;  ///< bias: linear layers and layer norms have biases
  double dropout = 0;               ///< probability, for the attention weights and the outputs of the residual branches
  Activation activation = Activation::gelu;
  NormOrder norm_order = NormOrder::pre;
  NormKind norm = NormKind::layer;
  /// Of the initial weights of the two projections that end in the residual path; only for Init::gpt2.
  double projection_std = kInitStd;
  Init init = Init::gpt2;
  BlockExtras extras = {};
  std::int64_t ffn_width = 0;          ///< hidden width of the feed-forward network; 0: feed_forward_width()
  double norm_epsilon = kNormEpsilon;  ///< of both norms

  /// The hidden width F of the feed-forward network.
  std::int64_t hidden_width() const;
  /// The columns of keys, as many as values have, and those of packed q‖k‖v.
  std::int64_t kv_width() const { return n_kv_head == 0 ? n_embd : n_embd / n_head * n_kv_head; }
  std::int64_t qkv_width() const { return n_embd + 2 * kv_width(); }

  /// The initial weights [out, in] of a projection, with standard deviation `gpt2` for Init::gpt2.
  Initializer initial_weights(std::int64_t in, std::int64_t out, double gpt2 = kInitStd) const;
  /// The initial weights [out, in] of a projection that ends in the residual path.
  Initializer initial_residual_weights(std::int64_t in, std::int64_t out) const;
  /// rotary_angles() of the model's heads, which rotate queries and keys; null: positions are elsewhere.
  std::shared_ptr<const PositionTable> rotary = nullptr;
};

/// A residual connection: x + f(norm(x)), or norm(x + f(x)) in post-norm order, with dropout on the output of f.
struct Residual {
  NormOrder order = NormOrder::pre;
  Dropout drop = {};

  /// f maps [B, T, C] to [B, T, C].
  template <class F>
  Tensor operator()(const Tensor& x, const Norm& norm, const F& f) const {
    if (order == NormOrder::pre) return add(x, drop(f(norm(x))));
    return norm(add(x, drop(f(x))));
  }
};

/// How many parameters a Block, without adapters, and each of its norms have with these options.
std::int64_t block_parameter_count(const BlockOptions& options);
std::int64_t norm_parameter_count(const BlockOptions& options);

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
  Tensor operator()(const Tensor& x, KvLayer* cache = nullptr, const Tensor& key_mask = {}, const Tensor& mask = {},
                    BlockContext* context = nullptr) const;
  /// The projections q‖k‖v of tokens at positions first, first + 1, …, normalized and rotated as the options say: [B,
  /// T, C] → [B, T, qkv_width()]. The context is needed for a value residual, in the first block too, which puts its v
  /// there. Throws Error if a block with value_gain gets none.
  Tensor project(const Tensor& x, std::int64_t first, BlockContext* context = nullptr) const;

  Attention options;
  std::shared_ptr<const PositionTable> rotary;
  Linear c_attn;
  Parameter* qk_norm;     // gains of the columns of q‖k; or null
  Parameter* value_gain;  // of the columns of v; or null
  Linear c_proj;

 private:
  Tensor with_first_values(const Tensor& qkv, BlockContext* context) const;
};

/// The usual hidden width F of a feed-forward network: 4C, or for swiglu 8C/3, with which its three matrices have as
/// many weights as the two of the others (Shazeer 2020, arXiv:2002.05202, section 3), rounded up to a multiple of 16.
std::int64_t feed_forward_width(std::int64_t n_embd, Activation activation);

/// Position-wise feed-forward network: c_proj(activation(c_fc(x))), [… C] → [… C]. c_fc is [F, C], or for swiglu
/// gate‖up [2F, C], where F is hidden_width() of the options. Section 3.3.
struct FeedForward {
  FeedForward(const Scope& scope, const BlockOptions& options);
  Tensor operator()(const Tensor& x) const { return feed_forward(x, c_fc, activation, c_proj); }

  Activation activation;
  Linear c_fc, c_proj;
};

/// What the extras add around a branch f of a block: scale · f(conv(x)), [B, T, C] → [B, T, C].
struct Branch {
  /// Creates h.conv_<number>.weight and h.scale_<number> in the scope h of the block, as far as the options want them.
  /// `number` is 1 for attention, 2 for the feed-forward network.
  Branch(const Scope& scope, const BlockOptions& options, int number);
  /// `recent` is that of ShortConv; if f throws, it stays as it was.
  template <class F>
  Tensor operator()(const Tensor& x, const F& f, Tensor* recent) const {
    Tensor read = recent != nullptr ? *recent : Tensor();
    const Tensor y = f(conv ? (*conv)(x, recent != nullptr ? &read : nullptr) : x);
    if (recent != nullptr) *recent = read;
    return scale != nullptr ? mul(y, *scale) : y;
  }

  std::optional<ShortConv> conv;
  Parameter* scale;  // [C] or null
};

/// Attention, then feed-forward, each in a residual connection: [B, T, C] → [B, T, C]. The left half of figure 1.
struct Block {
  Block(const Scope& scope, const BlockOptions& options);
  /// The cache, the masks and the context are those of MultiHeadAttention.
  Tensor operator()(const Tensor& x, KvLayer* cache = nullptr, const Tensor& key_mask = {}, const Tensor& mask = {},
                    BlockContext* context = nullptr) const;
  /// The block with attend(y) instead of attn(y), both [B, T, C] → [B, T, C]. `recent`, if not null, are the inputs of
  /// convolutions that generation keeps.
  template <class Attend>
  Tensor with_attention(const Tensor& x, const Attend& attend, RecentInputs* recent = nullptr) const {
    Tensor* const before_attn = recent != nullptr ? &recent->attention : nullptr;
    Tensor* const before_mlp = recent != nullptr ? &recent->feed_forward : nullptr;
    const Tensor y = residual(x, ln_1, [&](const Tensor& z) { return branch_1(z, attend, before_attn); });
    return residual(y, ln_2, [&](const Tensor& z) { return branch_2(z, mlp, before_mlp); });
  }
  /// What the block reads if x leaves the block before it and x0 entered the first block: x + skip · x0, or x.
  Tensor entering(const Tensor& x, const Tensor& x0) const { return skip != nullptr ? add(x, mul(x0, *skip)) : x; }

  Residual residual;
  Parameter* skip;  // [C] or null
  Norm ln_1;
  Branch branch_1;
  MultiHeadAttention attn;
  Norm ln_2;
  Branch branch_2;
  FeedForward mlp;
};

}  // namespace maki
