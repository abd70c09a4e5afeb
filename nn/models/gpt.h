// The decoder-only Transformer of GPT-2: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners".
// Parameters have the names of GPT-2 and nanoGPT; weights of linear layers are [out, in].
//
//   x = wte(ids) + wpe(positions) [+ ngram(ids)];   for each block: x += attn(ln_1(x)); x += mlp(ln_2(x));   logits =
//   lm_head(ln_f(x))
//
// With norm rms, positions rotary, activation swiglu and no biases it is LLaMA: Touvron et al. 2023, arXiv:2302.13971.
//
// Shapes: B sequences, T tokens, C = n_embd, V = vocab_size.
//
// Thread safety: the const member functions may be called on several threads at once while no value changes; each
// thread needs its own tape and cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "autograd/recompute.h"
#include "nn/generate/kv_cache.h"
#include "nn/model.h"
#include "nn/ngram.h"
#include "nn/transformer.h"

namespace maki {

/// The defaults are those of the smallest GPT-2, with 124 million parameters.
struct GptConfig {
  std::int64_t n_layer = 12, n_head = 12, n_embd = 768, block_size = 1024, vocab_size = 50257;
  double dropout = 0;       ///< probability in [0, 1); for embeddings, attention weights and residual branches
  bool bias = true;         ///< whether linear layers and layer norms have biases (an rms norm has none)
  bool tie_weights = true;  ///< use wte as the output head: Press and Wolf 2017, arXiv:1608.05859
  Activation activation = Activation::gelu;
  NormOrder norm_order = NormOrder::pre;
  NormKind norm = NormKind::layer;
  /// With sinusoidal positions, token embeddings are multiplied by √C, as in section 3.4 of Vaswani et al. 2017.
  Positions positions = Positions::learned;
  double position_base = 10000;        ///< of sinusoidal and rotary positions
  NgramOptions ngram = {};             ///< n-gram embeddings, added to those of the tokens; default none
  BlockExtras extras = {};             ///< what GPT-2 does not have; default none
  std::int64_t ffn_width = 0;          ///< hidden width of the feed-forward networks; 0: feed_forward_width()
  double norm_epsilon = kNormEpsilon;  ///< what norms add to the variance, or to the mean square
  /// The logits have a prior (nn/prior.h) that depends on at most this many tokens, the next one included; 0: none.
  std::int64_t ngram_prior = 0;
  /// Of each block, only its input is kept for the backward pass, which computes the block again (recompute() in
  /// autograd/recompute.h); all bits stay the same.
  bool recompute_blocks = false;
  std::int64_t n_kv_head = 0;  ///< heads of keys and values, see Attention; must divide n_head; 0: n_head
};

struct Gpt {
  /// Creates the parameters below `scope`. Weights are drawn from N(0, 0.02²), those of projections that end in the
  /// residual path from N(0, (0.02/√(2 n_layer))²); biases are 0, the weights of norms 1. Throws Error for sizes below
  /// 1, if n_head does not divide n_embd or n_kv_head does not divide n_head, for a dropout outside [0, 1), for a
  /// position_base that is not above 1 where it is used, for rotary positions if heads have an odd number of columns,
  /// for an ffn_width or ngram_prior below 0, for a norm_epsilon that is not above 0, and for n-gram options or a
  /// conv_width that are out of range.
  ///
  /// Requires: the store of `scope` outlives the model, and is sealed before the model computes anything.
  Gpt(const Scope& scope, const GptConfig& config);

  /// ids [B, T] int32 → logits [B, T, V]. Throws Error if an id is outside [0, V), or if positions are learned and T >
  /// block_size. Other positions have no such limit; block_size is then only the context of training.
  /// `prior` [B, T, V] is needed if the model has one.
  Tensor logits(const Tensor& ids, const Tensor& prior = {}) const { return with_prior(hidden(ids), prior); }
  /// The cross-entropy of logits(ids, prior) against targets [B, T] int32, in nats: []. `options` are those of
  /// cross_entropy().
  Tensor loss(const Tensor& ids, const Tensor& targets, const CrossEntropy& options = {},
              const Tensor& prior = {}) const {
    return hidden_loss(hidden(ids), targets, options, prior);
  }
  /// The cross-entropy in nats, [], of the tokens whose result of hidden() is x.
  Tensor hidden_loss(const Tensor& x, const Tensor& targets, const CrossEntropy& options,
                     const Tensor& prior = {}) const;

  /// An empty cache with room for `capacity` tokens in each of `batch` sequences; 0: block_size.
  KvCache make_cache(std::int64_t batch, std::int64_t capacity = 0) const;
  /// Appends t >= 1 tokens to every sequence of the cache, ids [B, t], and returns the logits of the last one, [B, V].
  /// They are bit-identical to those of logits() over the whole sequence, outside a Recording. Throws Error, without
  /// changing the cache, if an id is outside [0, V), if more tokens would be held than the cache or learned positions
  /// have room for, inside a Recording, or without the `prior` [B, 1, V], of the last token, if the model has one.
  Tensor next_logits(const Tensor& ids, KvCache& cache, const Tensor& prior = {}) const;

  /// Everything except the head: ids [B, T] → [B, T, C]. With a cache, ids are the tokens after those that it holds.
  Tensor hidden(const Tensor& ids, KvCache* cache = nullptr) const;
  /// hidden(), but with layer(i, x) instead of block i, for tokens at positions start, start + 1, …
  /// The n-grams of the first tokens begin in the tokens `before` [B, m]; empty: none are known. If the blocks are
  /// recomputed, backward() calls copies of `layer`.
  template <class Layer>
  Tensor hidden_through(const Tensor& ids, std::int64_t start, const Tensor& before, const Layer& layer) const {
    Tensor x = embed(ids, start, before);
    for (std::size_t i = 0; i < h.size(); ++i) {
      const auto block = [layer, i](const Tensor& entering) { return layer(i, entering); };
      x = config.recompute_blocks ? recompute(x, block) : block(x);
    }
    return ln_f ? (*ln_f)(x) : x;
  }
  /// How many of the last tokens generation needs beside its cache: 0 without n-gram embeddings and prior.
  std::int64_t recent_tokens() const { return std::max(config.ngram.recent_tokens(), config.ngram_prior - 1); }
  /// What its prior has to be like; nullopt without one.
  std::optional<PriorNeeds> prior_needs() const {
    return prior_gate ? std::optional(PriorNeeds{config.vocab_size, config.ngram_prior - 1}) : std::nullopt;
  }
  /// The output head: [… C] → [… V].
  Tensor head(const Tensor& x) const { return linear(x, head_weight()); }
  /// The output head with the prior added, if the model has one: [… C] → [… V]. Throws Error if it is missing.
  Tensor with_prior(const Tensor& x, const Tensor& prior) const;
  /// Its weight, [V, C].
  const Parameter& head_weight() const { return lm_head ? lm_head->weight : wte.weight; }

  /// Number of parameters N without position embeddings and adapters, as nanoGPT counts them.
  std::int64_t parameter_count() const;
  /// Number of parameters without embeddings that are only looked up (those of n-grams, and wte if the head has weights
  /// of its own): the N of flop_per_token().
  std::int64_t flop_parameter_count() const;
  /// Floating-point operations per token of a training step, forward and backward, for sequences of T = `length`
  /// tokens: 6N + 12·L·C·T, with L = n_layer. Chowdhery et al. 2022, arXiv:2204.02311, appendix B.
  double flop_per_token(std::int64_t length) const;
  /// See Model::activation_bytes().
  std::int64_t activation_bytes(std::int64_t batch, std::int64_t length) const;

  GptConfig config;
  DType dtype;                                     // of the parameters
  Embedding wte;                                   // tokens
  std::optional<Embedding> wpe;                    // learned positions
  std::shared_ptr<const PositionTable> sinusoids;  // or null
  std::optional<NgramEmbedding> ngram;
  std::vector<Block> h;
  std::optional<Norm> ln_f;       // absent in post-norm order, where the last block ends in a norm
  std::optional<Linear> lm_head;  // absent if the weights are tied
  std::optional<PriorGate> prior_gate;
  Dropout drop;

 private:
  Tensor embed(const Tensor& ids, std::int64_t start, const Tensor& before) const;
  Tensor tokens_and_positions(const Tensor& ids, std::int64_t start) const;
};

/// Wraps Gpt in the interfaces of nn/model.h.
class GptModel final : public Generator {
 public:
  GptModel(const Scope& scope, const GptConfig& config) : gpt(scope, config) {}

  const char* kind() const override { return "gpt"; }
  Tensor loss(const Batch& batch, const CrossEntropy& options, State* = nullptr) const override {
    return gpt.loss(batch.ids, batch.targets, options, prior_of_batch(batch, gpt.dtype));
  }
  double flop_per_token(std::int64_t length) const override { return gpt.flop_per_token(length); }
  std::int64_t flop_parameter_count() const override { return gpt.flop_parameter_count(); }
  std::int64_t activation_bytes(std::int64_t batch, std::int64_t length) const override {
    return gpt.activation_bytes(batch, length);
  }
  std::unique_ptr<State> start(std::int64_t batch, const Tensor& source = {},
                               const Tensor& source_mask = {}) const override;
  Tensor next_logits(const Tensor& ids, State& state) const override;

  Gpt gpt;

 protected:
  std::optional<PriorNeeds> prior_needs() const override { return gpt.prior_needs(); }
};

}  // namespace maki
