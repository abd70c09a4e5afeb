// The options of the models of nn/models: sizes, the parts of their blocks, and what enters the first one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "nn/layers.h"
#include "nn/ngram.h"
#include "nn/positions.h"

namespace maki {

/// Where a residual connection around f applies its norm.
enum class NormOrder : std::uint8_t {
  pre,  ///< x + f(norm(x)): GPT-2; Xiong et al. 2020, arXiv:2002.04745
  post  ///< norm(x + f(x)): the original Transformer
};
inline constexpr std::array kNormOrders = {NormOrder::pre, NormOrder::post};
/// "pre" or "post".
const char* to_string(NormOrder order);

/// The usual hidden width F of a feed-forward network: 4C, or for swiglu 8C/3, with which its three matrices have as
/// many weights as the two of the others (Shazeer 2020, arXiv:2002.05202, section 3), rounded up to a multiple of 16.
std::int64_t feed_forward_width(std::int64_t n_embd, Activation activation);

/// The defaults are those of the smallest GPT-2, with 124 million parameters. A model ignores what it has no use for.
struct TransformerConfig {
  std::int64_t n_layer = 12, n_head = 12, n_embd = 768, block_size = 1024, vocab_size = 50257;
  double dropout = 0;       ///< probability in [0, 1); for embeddings, attention weights and residual branches
  bool bias = true;         ///< whether linear layers and layer norms have biases (an rms norm has none)
  bool tie_weights = true;  ///< use wte as the output head: Press and Wolf 2017, arXiv:1608.05859
  Activation activation = Activation::gelu;
  NormOrder norm_order = NormOrder::pre;
  NormKind norm = NormKind::layer;
  /// With sinusoidal positions, token embeddings are multiplied by √C, as in section 3.4 of Vaswani et al. 2017.
  Positions positions = Positions::learned;
  double position_base = 10000;  ///< of sinusoidal and rotary positions
  /// N-gram embeddings, added to those of the tokens: NgramOptions. Without orders there are none.
  std::vector<std::int64_t> ngram_orders = {};
  std::int64_t ngram_rows = 65536;
  double ngram_dropout = 0;
  // Parts that GPT-2 does not have. What each of them brings: docs/learning.md.
  /// An RMS norm of each head's queries and keys, with a gain for every column, before positions rotate them: scores
  /// then do not grow with the weights. Henry et al. 2020, arXiv:2010.04245; Dehghani et al. 2023, arXiv:2302.05442.
  bool qk_norm = false;
  /// The initial weights of the projections that end in the residual path are 0, so that every block is initially the
  /// identity (in post-norm order, two norms).
  bool zero_projections = false;
  /// Tokens of a ShortConv before attention and before the feed-forward network, counting the token itself, from 2 to
  /// kMaxConvWidth; 0: none. An encoder sees later tokens as well, see ShortConv.
  std::int64_t conv_width = 0;
  std::int64_t ffn_width = 0;          ///< hidden width of the feed-forward network; 0: feed_forward_width()
  double norm_epsilon = kNormEpsilon;  ///< of the norms
  /// The logits have a prior (nn/prior.h) that depends on at most this many tokens, the next one included; 0: none.
  std::int64_t ngram_prior = 0;
  /// Of each block, only its input is kept for the backward pass, which computes the block again (recompute() in
  /// autograd/recompute.h); all bits stay the same.
  bool recompute_blocks = false;
  std::int64_t n_kv_head = 0;  ///< heads of keys and values, see Attention; must divide n_head; 0: n_head

  NgramOptions ngram() const { return {ngram_orders, ngram_rows, ngram_dropout}; }
  /// Heads of keys and values, and the heads that share each of them.
  std::int64_t kv_heads() const { return n_kv_head == 0 ? n_head : n_kv_head; }
  std::int64_t heads_per_kv_head() const { return n_head / kv_heads(); }
  /// The columns of keys, as many as values have, and those of packed q‖k‖v.
  std::int64_t kv_width() const { return n_kv_head == 0 ? n_embd : n_embd / n_head * n_kv_head; }
  std::int64_t qkv_width() const { return n_embd + 2 * kv_width(); }
  /// The hidden width F of the feed-forward network.
  std::int64_t hidden_width() const { return ffn_width > 0 ? ffn_width : feed_forward_width(n_embd, activation); }
  /// How many tokens before a text its n-grams and its prior contain; 0 without them.
  std::int64_t recent_tokens() const { return std::max(ngram().recent_tokens(), ngram_prior - 1); }
};

/// Returns the configuration. Throws Error, with the name of the model, for sizes below 1, for a dropout outside [0,
/// 1), for an ffn_width or ngram_prior below 0, and for a norm_epsilon outside (0, 1]. What concerns heads,
/// positions, convolutions and n-grams is checked where these are made.
const TransformerConfig& checked(const char* model, const TransformerConfig& config);

/// Floating-point operations per token of a training step, forward and backward, of the two products of softmax
/// attention over `length` keys in all layers: 12·L·C·T. Chowdhery et al. 2022, arXiv:2204.02311, appendix B.
double attention_flop(const TransformerConfig& config, std::int64_t length);

}  // namespace maki
