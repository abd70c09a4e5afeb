// Transformer-XL: Dai et al. 2019, arXiv:1901.02860. A text is read in segments, and every layer attends to the hidden
// states that entered it for the last tokens of earlier segments, its memory, to which no gradient flows (section 3.2).
// Scores depend on distances instead of positions, so the memory needs no new positions (section 3.3).
//
//   x = wte(ids) [+ ngram(ids)]
//   for each block: seen = memory ∘ x;  x += attn(ln_1(x), ln_1(seen));  x += mlp(ln_2(x))
//   logits = lm_head(ln_f(x));   the memory becomes the last M rows of each `seen`
//
// Shapes: B sequences, T tokens, M = memory, C = n_embd, V = vocab_size.
//
// Thread safety: as for Gpt; each thread needs its own tape and state.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nn/model.h"
#include "nn/relative.h"
#include "nn/token_input.h"

namespace maki {

/// block_size is the tokens per segment in training, and position_base that of the encodings of distances. The n-grams
/// and the prior of a segment begin in the tokens of the memory. `positions` and recompute_blocks have no effect;
/// DistanceAttention says which options of blocks have none.
struct TransformerXlConfig : TransformerConfig {
  std::int64_t memory = 1024;  ///< tokens per layer; 0: a Transformer with relative positions
};

/// The memory that is carried from one segment to the next: for each layer, what entered it for the last length()
/// tokens, [B, length(), C], detached; and for n-gram embeddings or a prior the ids of these tokens.
class SegmentMemory final : public State {
 public:
  /// For a model with these sizes. Throws Error if the memory or the batch is below 1.
  SegmentMemory(const TransformerXlConfig& config, std::int64_t batch, DType dtype);

  std::int64_t batch() const override { return layers_[0].shape()[0]; }
  /// Tokens in the memory, at most capacity(): older ones have been forgotten.
  std::int64_t length() const override { return layers_[0].shape()[1]; }
  std::int64_t capacity() const override { return capacity_; }
  void clear() override;
  void reorder(std::span<const std::int32_t> rows) override;
  /// memory.0, memory.1, …: one for each layer; and `tokens` [B, length()] for n-gram embeddings or a prior: the ids as
  /// numbers of the type of the layers, because all tensors of a state that is carried have one type.
  std::vector<std::pair<std::string, Tensor*>> tensors() override;

  std::int64_t layers() const { return std::ssize(layers_); }
  /// The memory of layer i, [B, length(), C]; an empty handle if nothing is in the memory.
  Tensor layer(std::size_t i) const { return length() > 0 ? layers_[i] : Tensor(); }
  /// The last tokens in the memory, as many as n-grams and prior need, [B, m] int32; an empty handle if there are none.
  Tensor recent() const;
  /// Appends ids [B, T] and what entered each layer for them, [B, T, C], detached, and keeps the last capacity()
  /// tokens. Replaces all tensors; if it throws, none.
  void append(const Tensor& ids, const std::vector<Tensor>& entering);

 private:
  std::int64_t capacity_, recent_tokens_;
  std::vector<Tensor> layers_;
  Tensor tokens_;  // empty without n-gram embeddings and prior
};

/// What generation keeps: for each layer the keys and values of the last tokens, and the projected encodings of all
/// distances at which they can be. At the end of a segment all but the last tokens are forgotten.
///
/// With a memory of at least half of block_size, segments and memory are those of training, so token after token has
/// the logits of training's segments one after the other. A smaller one would leave the first tokens of a segment with
/// little context. Then a segment ends when memory + block_size tokens are held, and half of block_size is kept. In any
/// case no distance occurs that training does not have.
class DistanceCache final : public State {
 public:
  /// For a model with these sizes. `r` has the projected encodings of each layer, DistanceAttention::distances(memory +
  /// block_size). Throws Error if the batch is below 1.
  DistanceCache(const TransformerXlConfig& config, std::int64_t batch, std::vector<Tensor> r, DType dtype);

  std::int64_t batch() const override { return batch_; }
  std::int64_t length() const override { return length_; }
  std::int64_t capacity() const override { return kUnlimitedCapacity; }
  void clear() override;
  void reorder(std::span<const std::int32_t> rows) override;
  /// kv.0, kv.1, …: k‖v of each layer, [B, memory + block_size, 2C].
  std::vector<std::pair<std::string, Tensor*>> tensors() override;

  std::int64_t layers() const { return std::ssize(kv_); }
  /// Tokens that can be read before the segment ends, at least 1. If it has ended, begins the next one first.
  std::int64_t room();
  /// Writes k‖v [B, t, 2C] of a layer's next t tokens behind those that it holds. Returns the tensor of the layer,
  /// whose rows [0, held() + t) are then in use. Requires: t is at most what room(), called
  /// before the first layer, returned.
  const Tensor& append(std::size_t layer, const Tensor& kv);
  const Tensor& distances(std::size_t layer) const { return r_[layer]; }
  /// Tokens whose keys and values are held.
  std::int64_t held() const { return held_; }
  /// The last tokens, if the model has n-gram embeddings or a prior.
  RecentTokens recent;
  /// Must be called when all layers have read `tokens` tokens.
  void advance(std::int64_t tokens);

 private:
  std::int64_t batch_;
  std::int64_t kept_, segment_;   // tokens kept at the end of a segment; tokens from then on until the next end
  std::int64_t first_end_, end_;  // the length at the end of the first segment, and of this one
  std::int64_t held_ = 0, length_ = 0;
  std::vector<Tensor> kv_, r_;
};

struct TransformerXl {
  /// Creates the parameters below `scope`, drawn as those of Gpt, and u and v from N(0, 0.02²) as in the code of the
  /// paper. Throws Error as the constructor of Gpt does, and for a memory below 0; unless it is 0, also if it is
  /// shorter than recent_tokens(), or if these are not 0 and the vocabulary is above 2^24, the largest number up to
  /// which float32 has all ids.
  ///
  /// Requires: the store of `scope` outlives the model, and is sealed before the model computes anything.
  TransformerXl(const Scope& scope, const TransformerXlConfig& config);

  /// Everything except the head: ids [B, T] int32, of any T → [B, T, C]. With a memory, ids are the tokens after it.
  /// `entering`, if not null, becomes what SegmentMemory::append() takes. Throws Error unless the memory has B rows and
  /// the layers of the model.
  Tensor hidden(const Tensor& ids, const SegmentMemory* memory = nullptr,
                std::vector<Tensor>* entering = nullptr) const;
  /// hidden() of what embed() returned, [B, T, C], with block i replaced by layer(i, x).
  template <class Layer>
  Tensor hidden_through(const Tensor& embedded, const Layer& layer) const {
    Tensor x = embedded;
    for (std::size_t i = 0; i < h.size(); ++i) x = layer(i, x);
    return ln_f ? (*ln_f)(x) : x;
  }
  /// ids [B, T] after the tokens `before` [B, m], empty if none are known → [B, T, C].
  Tensor embed(const Tensor& ids, const Tensor& before = {}) const {
    return drop(input("transformer-xl", wte.weight, ids, 0, before));
  }
  /// The output head: [… C] → [… V], and its weight [V, C].
  Tensor head(const Tensor& x) const { return linear(x, head_weight()); }
  /// The output head with the prior [… V] added, if the model has one: [… C] → [… V]. Throws Error if it is missing.
  Tensor with_prior(const Tensor& x, const Tensor& prior) const;
  const Parameter& head_weight() const { return lm_head ? lm_head->weight : wte.weight; }

  TransformerXlConfig config;
  DType dtype;  // of the parameters
  Embedding wte;
  TokenInput input;
  std::shared_ptr<const PositionTable> encodings;  // of distances
  std::vector<DistanceBlock> h;
  std::optional<Norm> ln_f;       // absent in post-norm order, where the last block ends in a norm
  std::optional<Linear> lm_head;  // absent if the weights are tied
  std::optional<PriorGate> prior_gate;
  Dropout drop;
};

/// Wraps TransformerXl in the interfaces of nn/model.h: the model `transformer-xl`.
class TransformerXlModel final : public Generator {
 public:
  TransformerXlModel(const Scope& scope, const TransformerXlConfig& config) : net(scope, config) {}

  const char* kind() const override { return "transformer-xl"; }
  Tensor loss(const Batch& batch, const CrossEntropy& options, State* carried = nullptr) const override;
  /// A SegmentMemory, or null for a model whose memory is 0.
  std::unique_ptr<State> make_carried(std::int64_t batch) const override;
  /// ids [B, T] int32 → logits [B, T, V]. With a memory, ids are the tokens after it, and are then appended to it.
  /// `prior` [B, T, V] is needed if the model has one.
  Tensor logits(const Tensor& ids, SegmentMemory* memory = nullptr, const Tensor& prior = {}) const;

  std::optional<ForwardParts> forward_parts(const Tensor& ids) const override;
  /// 18·L·C for each of T + M keys, which take part in three products instead of two, plus 12·L·C²·M/T: each segment of
  /// T tokens projects the keys and values of the memory once more.
  double attention_flop(std::int64_t length) const override;
  std::int64_t activation_bytes(std::int64_t batch, std::int64_t length) const override;
  /// A DistanceCache, which belongs to the weights that the model has now.
  std::unique_ptr<State> start(std::int64_t batch, const Tensor& source = {},
                               const Tensor& source_mask = {}) const override;
  Tensor next_logits(const Tensor& ids, State& state) const override;

  TransformerXl net;

 protected:
  std::optional<PriorNeeds> prior_needs() const override {
    if (!net.prior_gate) return std::nullopt;
    return PriorNeeds{net.config.vocab_size, net.config.ngram_prior - 1};
  }
};

}  // namespace maki
