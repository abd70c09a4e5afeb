// GPT-2's decoder-only Transformer: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners". Names
// of parameters are those of GPT-2 and nanoGPT; weights of linear layers are [out, in].
//
//   x = wte(ids) + wpe(positions);   for each block: x += attn(ln_1(x)), x += mlp(ln_2(x));   logits = lm_head(ln_f(x))
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nn/kv_cache.h"
#include "nn/transformer.h"

namespace maki {

/// The defaults are those of GPT-2's smallest model, 124 million parameters.
struct GptConfig {
  std::int64_t n_layer = 12, n_head = 12, n_embd = 768, block_size = 1024, vocab_size = 50257;
  double dropout = 0;       ///< of embeddings, attention weights and both residual branches
  bool bias = true;         ///< in linear layers and layer norms
  bool tie_weights = true;  ///< the head is wte: Press and Wolf 2017, arXiv:1608.05859
  Activation activation = Activation::gelu;
  NormOrder norm = NormOrder::pre;
  /// 0: learned positions (wpe). Otherwise the base of sinusoidal ones; tokens are then multiplied by √C, as in section
  /// 3.4 of Vaswani et al. 2017.
  double sinusoidal_base = 0;
};

struct Gpt {
  /// Weights N(0, 0.02), those that end in the residual path N(0, 0.02/√(2 n_layer)), biases 0, norms 1. Throws, naming
  /// the rule, for sizes below 1 or an n_embd that n_head does not divide.
  Gpt(const Scope& scope, const GptConfig& config);

  /// ids [B, T] int32, T <= block_size → logits [B, T, V].
  Tensor logits(const Tensor& ids) const { return head(hidden(ids)); }
  /// Cross-entropy of the logits against targets [B, T] int32, in nats: [].
  Tensor loss(const Tensor& ids, const Tensor& targets, const CrossEntropy& options = {}) const {
    return linear_cross_entropy(hidden(ids), head_weight(), targets, options);
  }

  /// Room for block_size tokens of `batch` sequences.
  KvCache make_cache(std::int64_t batch) const;
  /// The next t >= 1 tokens of every sequence, ids [B, t], after those in the cache → logits of the last one, [B, V]:
  /// the same bits as logits() over the whole sequence gives there. Throws, without a change, when more than block_size
  /// tokens would be held.
  Tensor next_logits(const Tensor& ids, KvCache& cache) const;

  /// Everything but the head: [B, T] → [B, T, C]. With a cache, of the tokens after those it holds.
  Tensor hidden(const Tensor& ids, KvCache* cache = nullptr) const;
  /// [… C] → [… V].
  Tensor head(const Tensor& x) const { return linear(x, head_weight()); }
  /// [V, C].
  const Parameter& head_weight() const { return lm_head ? lm_head->weight : wte.weight; }

  /// Parameters without positions, as nanoGPT counts them.
  std::int64_t parameter_count() const;
  /// Floating-point operations a token of a training step, forward and backward: 6N + 12·L·C·T for contexts of T
  /// tokens. Chowdhery et al. 2022, arXiv:2204.02311, appendix B.
  double flop_per_token(std::int64_t length) const;

  GptConfig config;
  Embedding wte;
  std::optional<Embedding> wpe;  // learned positions
  Tensor sinusoids;              // [block_size, C], or none
  std::vector<Block> h;
  std::optional<LayerNorm> ln_f;  // none in post-norm order, whose last block ends in a norm
  std::optional<Linear> lm_head;  // none when tied
  Dropout drop;

 private:
  Tensor embed(const Tensor& ids, std::int64_t start) const;
};

}  // namespace maki
