// A GPT with linear attention: the softmax over all earlier tokens becomes a product of features, whose sums over the
// past are a state of constant size. "Transformers are RNNs": Katharopoulos et al. 2020, arXiv:2006.16236.
//
//   training    all tokens at once, in chunks:      y_t = φ(q_t)ᵀ Σ_{s≤t} φ(k_s) v_sᵀ / φ(q_t)ᵀ Σ_{s≤t} φ(k_s)
//   generation  one token after the other:          S += φ(k) vᵀ, z += φ(k), y = φ(q)ᵀ S / φ(q)ᵀ z
//
// The feature map φ chooses a place between softmax attention, which is the other end of the spectrum and is computed
// as in `gpt`, and a state of a few numbers (nn/features.h). Parameters are those of Gpt, with the same names; random
// and Nyström features add frozen ones, h.0.attn.projection or h.0.attn.landmarks. Dropout applies to embeddings and
// residual branches; there are no attention weights to drop.
//
// Shapes: B sequences, T tokens, C = n_embd, H heads of D = C / H columns and F features, V = vocab_size.
//
// Thread safety: as for Gpt; each thread needs its own tape and state.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/features.h"
#include "nn/models/gpt.h"

namespace maki {

struct LinearConfig : TransformerConfig {
  AttentionForm attention = {.kind = AttentionForm::Kind::elu};
};

/// What a model with linear attention keeps of the tokens that it has read: for each layer Σ φ(k) vᵀ [B, H, F, D] and
/// Σ φ(k) [B, H, F]. Its size does not depend on how many tokens they were.
class LinearState final : public State {
 public:
  /// Throws Error unless layers, batch, heads, features and head size are at least 1. `capacity` is how many tokens the
  /// positions of the model allow; recent_tokens how many `recent` keeps.
  LinearState(std::int64_t n_layer, std::int64_t batch, std::int64_t n_head, std::int64_t features,
              std::int64_t head_size, std::int64_t capacity, DType dtype, std::int64_t recent_tokens = 0);

  std::int64_t batch() const override { return batch_; }
  std::int64_t length() const override { return length_; }
  /// kUnlimitedCapacity, unless the model has learned positions, which end at block_size.
  std::int64_t capacity() const override { return capacity_; }
  void clear() override;
  void reorder(std::span<const std::int32_t> rows) override;
  /// sums.0, norms.0, sums.1, …: Σ φ(k) vᵀ and Σ φ(k) of each layer.
  std::vector<std::pair<std::string, Tensor*>> tensors() override;

  std::int64_t layers() const { return std::ssize(layers_); }
  LinearAttentionSums& layer(std::size_t i) { return layers_[i]; }
  /// The last inputs of the short convolutions of a layer, if it has any.
  RecentInputs& recent_inputs(std::size_t i) { return recent_inputs_[i]; }
  /// Must be called when `tokens` tokens have been read by all layers.
  void advance(std::int64_t tokens) { length_ += tokens; }
  /// The last tokens, if the model has n-gram embeddings or a prior.
  RecentTokens recent;

 private:
  std::int64_t batch_, capacity_, length_ = 0;
  std::vector<LinearAttentionSums> layers_;
  std::vector<RecentInputs> recent_inputs_;
};

/// The model `linear`. With softmax attention it computes what `gpt` does, bit for bit, and its state is a KvCache.
class LinearModel final : public Generator {
 public:
  /// Creates the parameters as Gpt does. Throws what its constructor throws, and Error for an n_kv_head that is neither
  /// 0 nor n_head, unless attention is softmax.
  LinearModel(const Scope& scope, const LinearConfig& config);

  const char* kind() const override { return "linear"; }
  Tensor loss(const Batch& batch, const CrossEntropy& options, State* = nullptr) const override {
    const Tensor prior = prior_of_batch(batch, gpt.dtype), x = hidden(batch.ids);
    return batch.expected ? loss_of_logits(gpt.with_prior(x, prior), batch, options)
                          : gpt.hidden_loss(x, batch.targets, options, prior);
  }
  /// ids [B, T] int32 → logits [B, T, V]. `prior` [B, T, V] is needed if the model has one.
  Tensor logits(const Tensor& ids, const Tensor& prior = {}) const { return gpt.with_prior(hidden(ids), prior); }
  /// ids [B, T] → [B, T, C]; with a state, ids are the tokens after those that it has read, and are then part of them.
  /// With softmax attention the state is ignored: next_logits() passes a KvCache to `gpt`.
  Tensor hidden(const Tensor& ids, LinearState* state = nullptr) const;
  std::optional<ForwardParts> forward_parts(const Tensor& ids) const override {
    return gpt.parts_through(ids, prior_of_batch({.ids = ids}, gpt.dtype),
                             [this](std::size_t i, const Tensor& x) { return block(i, x, nullptr); });
  }

  /// Three times the operations of the recurrence of each layer: 4·H·F·D for the state, and those of the feature map
  /// for one query and one key per head. They do not depend on the length. With softmax attention, as of Gpt.
  double attention_flop(std::int64_t length) const override;
  std::int64_t activation_bytes(std::int64_t batch, std::int64_t length) const override;
  std::unique_ptr<State> start(std::int64_t batch, const Tensor& source = {},
                               const Tensor& source_mask = {}) const override;
  /// Equal to the last row of logits() over the whole sequence except for rounding.
  Tensor next_logits(const Tensor& ids, State& state) const override;
  bool same_bits_stepwise() const override { return maps.empty(); }

  AttentionForm attention;
  Gpt gpt;
  std::vector<FeatureMap> maps;  // one per layer; none for softmax attention

 protected:
  std::optional<PriorNeeds> prior_needs() const override { return gpt.prior_needs(); }

 private:
  Tensor attend(std::size_t layer, const Tensor& x, LinearState* state) const;
  Tensor block(std::size_t layer, const Tensor& x, LinearState* state) const;
};

}  // namespace maki
