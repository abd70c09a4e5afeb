// GPT-2's decoder-only Transformer: Radford et al. 2019. Names of parameters are those of GPT-2 and nanoGPT.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/transformer.h"

namespace maki {

class KvCache;

struct GptConfig {
  std::int64_t n_layer = 12, n_head = 12, n_embd = 768, block_size = 1024, vocab_size = 50257;
  double dropout = 0;       ///< of embeddings, attention weights and both residual branches
  bool bias = true;         ///< in linear layers and layer norms
  bool tie_weights = true;  ///< the head is wte: Press and Wolf 2017, arXiv:1608.05859
  Activation activation = Activation::gelu;
  NormOrder norm = NormOrder::pre;
  double sinusoidal_base = 0;  ///< 0: learned positions (wpe); otherwise the base of sinusoidal ones
};

struct Gpt {
  /// Weights N(0, 0.02), those that end in the residual path N(0, 0.02/√(2 n_layer)), biases 0, norms 1.
  Gpt(const Scope& scope, const GptConfig& config);

  /// ids [B, T] int32, T <= block_size → logits [B, T, V].
  Tensor logits(const Tensor& ids) const { return head(hidden(ids)); }
  /// Cross-entropy of the logits against targets [B, T] int32.
  Tensor loss(const Tensor& ids, const Tensor& targets, const CrossEntropy& options = {}) const {
    return cross_entropy(logits(ids), targets, options);
  }
  /// The next t tokens of every sequence, ids [B, t], after those in the cache → logits of the last one, [B, V]: the
  /// same bits as logits() over the whole sequence gives there. Throws when the cache would grow past block_size.
  Tensor next_logits(const Tensor& ids, KvCache& cache) const;

  /// Everything but the head: [B, T] → [B, T, C].
  Tensor hidden(const Tensor& ids) const;
  Tensor head(const Tensor& x) const;

  /// Parameters without positions, as nanoGPT counts them: N of the 6N + 12 L C T floating-point operations a token.
  std::int64_t parameter_count() const;
  double flop_per_token(std::int64_t length) const;

  GptConfig config;
  Embedding wte;
  std::vector<Embedding> wpe;  // one, or none with sinusoidal positions
  Tensor sinusoids;
  std::vector<Block> h;
  LayerNorm ln_f;
  std::vector<Linear> lm_head;  // one, or none when tied
  Dropout drop;

 private:
  Tensor embed(const Tensor& ids, std::int64_t start) const;
};

}  // namespace maki
