// What the models of nn/models have in common: sizes, the parts of their blocks, and what enters the first one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "nn/ngram.h"
#include "nn/transformer.h"

namespace maki {

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
  NgramOptions ngram = {};       ///< n-gram embeddings, added to those of the tokens; default none
  /// Parts of a block that GPT-2 does not have, and its other numbers, as in BlockOptions.
  bool qk_norm = false, zero_projections = false;
  std::int64_t conv_width = 0, ffn_width = 0;
  double norm_epsilon = kNormEpsilon;
  /// The logits have a prior (nn/prior.h) that depends on at most this many tokens, the next one included; 0: none.
  std::int64_t ngram_prior = 0;
  /// Of each block, only its input is kept for the backward pass, which computes the block again (recompute() in
  /// autograd/recompute.h); all bits stay the same.
  bool recompute_blocks = false;
  std::int64_t n_kv_head = 0;  ///< heads of keys and values, see Attention; must divide n_head; 0: n_head

  /// The columns of keys, as many as values have.
  std::int64_t kv_width() const { return n_kv_head == 0 ? n_embd : n_embd / n_head * n_kv_head; }
  /// How many tokens before a text its n-grams and its prior contain; 0 without them.
  std::int64_t recent_tokens() const { return std::max(ngram.recent_tokens(), ngram_prior - 1); }
};

/// Returns the configuration. Throws Error, with the name of the model, for sizes below 1, for a dropout outside [0,
/// 1), for an ffn_width or ngram_prior below 0, and for a norm_epsilon that is not above 0. What concerns heads,
/// positions, convolutions and n-grams is checked where these are made.
const TransformerConfig& checked(const char* model, const TransformerConfig& config);

/// The options of the model's blocks, with Init::gpt2. Throws Error, if positions are rotary, for a position_base that
/// is not above 1 and for heads of an odd number of columns.
BlockOptions block_options(const TransformerConfig& config, DType dtype, bool causal = true);

/// Floating-point operations per token of a training step, forward and backward, of the two products of softmax
/// attention over `length` keys in all layers: 12·L·C·T. Chowdhery et al. 2022, arXiv:2204.02311, appendix B.
double attention_flop(const TransformerConfig& config, std::int64_t length);
/// Elements per token that blocks with these options save, with what stands around them (embeddings and final norm),
/// and those of the gradients that are alive at the same time. See Model::activation_bytes().
std::int64_t activations_per_token(const TransformerConfig& config, const BlockOptions& options);

}  // namespace maki
