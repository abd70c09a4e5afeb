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

#include <cstdint>
#include <optional>
#include <vector>

#include "autograd/recompute.h"
#include "nn/generate/kv_cache.h"
#include "nn/model.h"
#include "nn/token_input.h"
#include "nn/transformer.h"

namespace maki {

struct Gpt {
  /// Creates the parameters below `scope`. Weights are drawn from N(0, 0.02²), those of projections that end in the
  /// residual path from N(0, (0.02/√(2 n_layer))²); biases are 0, the weights of norms 1. Throws Error for sizes below
  /// 1, if n_head does not divide n_embd or n_kv_head does not divide n_head, for a dropout outside [0, 1), for a
  /// position_base that is not above 1 where it is used, for rotary positions if heads have an odd number of columns,
  /// for an ffn_width or ngram_prior below 0, for a norm_epsilon outside (0, 1], and for n-gram options or a
  /// conv_width that are out of range.
  ///
  /// Requires: the store of `scope` outlives the model, and is sealed before the model computes anything.
  Gpt(const Scope& scope, const TransformerConfig& config);

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
  /// have room for, inside a Recording, for the cache of a model of other sizes, or without the `prior` [B, 1, V], of
  /// the last token, if the model has one.
  Tensor next_logits(const Tensor& ids, KvCache& cache, const Tensor& prior = {}) const;

  /// Everything except the head: ids [B, T] → [B, T, C]. With a cache, ids are the tokens after those that it holds.
  Tensor hidden(const Tensor& ids, KvCache* cache = nullptr) const;
  /// hidden(), but with layer(i, x) instead of block i, for tokens at positions start, start + 1, …
  /// The n-grams of the first tokens begin in the tokens `before` [B, m]; empty: none are known. If the blocks are
  /// recomputed, backward() calls copies of `layer`.
  template <class Layer>
  Tensor hidden_through(const Tensor& ids, std::int64_t start, const Tensor& before, const Layer& layer) const {
    Tensor x = drop(input("gpt", wte.weight, ids, start, before));
    for (std::size_t i = 0; i < h.size(); ++i) {
      const auto block = [layer, i](const Tensor& entering) { return layer(i, entering); };
      x = config.recompute_blocks ? recompute(x, block) : block(x);
    }
    return ln_f ? (*ln_f)(x) : x;
  }
  /// Model::forward_parts() with layer(i, x) instead of block i.
  template <class Layer>
  ForwardParts parts_through(const Tensor& ids, const Tensor& prior, const Layer& layer) const {
    std::vector<Tensor> streams;
    hidden_through(ids, 0, {}, keeping_streams(streams, layer));
    return {.embedding = input.tokens(wte.weight, ids),
            .positions = input.positions(0, ids.shape()[1]),
            .position_kind = to_string(config.positions),
            .streams = std::move(streams),
            .logits = [this, prior](const Tensor& x) { return with_prior(ln_f ? (*ln_f)(x) : x, prior); }};
  }
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

  /// See Model::activation_bytes().
  std::int64_t activation_bytes(std::int64_t batch, std::int64_t length) const;

  TransformerConfig config;
  DType dtype;    // of the parameters
  Embedding wte;  // tokens
  TokenInput input;
  std::vector<Block> h;
  std::optional<Norm> ln_f;       // absent in post-norm order, where the last block ends in a norm
  std::optional<Linear> lm_head;  // absent if the weights are tied
  std::optional<PriorGate> prior_gate;
  Dropout drop;
};

/// Wraps Gpt in the interfaces of nn/model.h.
class GptModel final : public Generator {
 public:
  GptModel(const Scope& scope, const TransformerConfig& config) : gpt(scope, config) {}

  const char* kind() const override { return "gpt"; }
  Tensor loss(const Batch& batch, const CrossEntropy& options, State* = nullptr) const override {
    const Tensor prior = prior_of_batch(batch, gpt.dtype);
    if (batch.expected) return loss_of_logits(gpt.with_prior(gpt.hidden(batch.ids), prior), batch, options);
    return gpt.loss(batch.ids, batch.targets, options, prior);
  }
  std::optional<ForwardParts> forward_parts(const Tensor& ids) const override {
    return gpt.parts_through(ids, prior_of_batch({.ids = ids}, gpt.dtype),
                             [this](std::size_t i, const Tensor& x) { return gpt.h[i](x); });
  }
  double attention_flop(std::int64_t length) const override { return maki::attention_flop(gpt.config, length); }
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
