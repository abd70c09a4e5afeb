// The encoder–decoder Transformer: figure 1 of Vaswani et al. 2017, arXiv:1706.03762. Section numbers refer to that
// paper. In post-norm order, as published:
//
//   encoder   x = √C · embed(source) + positions;  per block: x = ln_1(x + attn(x));  x = ln_2(x + mlp(x))
//             memory = x
//   decoder   y = √C · embed(ids) + positions;     per block: y = ln_1(y + masked attn(y));
//                                                  y = ln_2(y + cross(y, memory));  y = ln_3(y + mlp(y))
//   logits = lm_head(y)
//
// Shapes: B pairs of S source and T target tokens, C = n_embd, V = vocab_size, V' = source_vocab_size.
//
// Thread safety: the const member functions may be called on several threads at once while no value changes; each
// thread needs its own tape and state.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nn/decoder.h"
#include "nn/generate/kv_cache.h"
#include "nn/model.h"
#include "nn/token_input.h"

namespace maki {

/// n_layer is the number of blocks of the encoder, and as many has the decoder. block_size is the most tokens that are
/// generated, and, of learned positions, the most read. Both sides have n-gram embeddings of their own. ngram_prior and
/// recompute_blocks have no effect; DecoderBlock says which options of blocks have none.
struct Seq2SeqConfig : TransformerConfig {
  std::int64_t source_vocab_size = 37000;
  bool shared_embeddings = false;  ///< one table for source and target tokens, whose vocabularies are then the same
};

/// The cache of the decoder's self-attention, and the keys and values that its cross-attention has of the source.
class Seq2SeqState final : public State {
 public:
  /// A state without target tokens. `source` has one entry for each layer of the decoder.
  Seq2SeqState(const Seq2SeqConfig& config, std::vector<CrossKeys> source);

  std::int64_t batch() const override { return self_.batch(); }
  std::int64_t length() const override { return self_.length(); }
  std::int64_t capacity() const override { return self_.capacity(); }
  /// Forgets the target tokens; the source stays.
  void clear() override { self_.clear(); }
  void reorder(std::span<const std::int32_t> rows) override;
  /// kv.0, kv.1, … of the cache; cross.0, cross.1, …: k‖v of the source for each layer, [B, S, 2C]; and source_mask if
  /// the source has padding.
  std::vector<std::pair<std::string, Tensor*>> tensors() override;

  KvCache& self() { return self_; }
  const std::vector<CrossKeys>& source() const { return source_; }

 private:
  KvCache self_;
  std::vector<CrossKeys> source_;  // of each layer; all have the same mask
};

struct Seq2Seq {
  /// Creates the parameters below `scope`. Token embeddings, learned positions and the head are drawn from N(0, 1/C),
  /// so that embeddings times √C have the variance of the positions or more, and the first logits a variance of about
  /// 1; projections from N(0, 2 / (in + out)), as in the published code (Init::xavier). With GPT-2's 0.02 the residual
  /// branches of a post-norm model are too small beside x after each norm, and learning starts late.
  ///
  /// Throws Error for sizes below 1, if n_head does not divide n_embd, for a dropout outside [0, 1), a position_base
  /// that is not above 1 where it is used, for rotary positions if heads have an odd number of columns, n-gram options
  /// that are out of range, and shared embeddings of different vocabularies.
  ///
  /// Requires: the store of `scope` outlives the model, and is sealed before the model computes anything.
  Seq2Seq(const Scope& scope, const Seq2SeqConfig& config);

  /// source [B, S] int32 and its mask [B, S] int32, 0 at padding (empty: no padding) → memory [B, S, C]. Throws Error
  /// if an id is outside [0, V'), for no tokens, for more of them than learned positions, if the mask has another shape
  /// or type, and if it hides all tokens of a sequence.
  Tensor encode(const Tensor& source, const Tensor& source_mask = {}) const;
  /// Everything of the decoder except the head: ids [B, T] and what encode() made of the source, with the mask that it
  /// was given → [B, T, C]. T may be above block_size, except with learned positions.
  Tensor decode(const Tensor& ids, const Tensor& memory, const Tensor& source_mask = {}) const;
  /// The output head: [… C] → [… V].
  Tensor head(const Tensor& x) const { return linear(x, head_weight()); }
  const Parameter& head_weight() const { return lm_head ? lm_head->weight : wte.weight; }

  /// Logits [B, T, V] of the token after each of ids [B, T], which begin with the token that starts a sequence.
  Tensor logits(const Tensor& source, const Tensor& source_mask, const Tensor& ids) const {
    return head(decode(ids, encode(source, source_mask), source_mask));
  }
  /// The cross-entropy of these logits against batch.targets, in nats: []. The decoder needs no mask for padding at the
  /// end of a target: no earlier token sees it, and its own targets are CrossEntropy::ignored.
  Tensor loss(const Batch& batch, const CrossEntropy& options = {}) const;

  /// Reads the source: a state that holds no target tokens yet, with room for block_size of them.
  std::unique_ptr<Seq2SeqState> start(const Tensor& source, const Tensor& source_mask = {}) const;
  /// Appends t >= 1 tokens to every target, ids [B, t], and returns the logits of the token after the last one, [B, V].
  /// They are bit-identical to those of logits() over the whole target, outside a Recording. Throws Error, without
  /// changing the state, if an id is outside [0, V), if more than block_size tokens would be held, or inside a
  /// Recording.
  Tensor next_logits(const Tensor& ids, Seq2SeqState& state) const;

  Seq2SeqConfig config;
  DType dtype;  // of the parameters
  Dropout drop;
  std::optional<Embedding> source_wte;  // absent if the embeddings are shared
  TokenInput source_input;
  std::vector<Block> encoder;
  std::optional<Norm> encoder_ln_f;  // final norms are absent in post-norm order, where blocks end in a norm
  Embedding wte;
  TokenInput target_input;
  std::vector<DecoderBlock> decoder;
  std::optional<Norm> decoder_ln_f;
  std::optional<Linear> lm_head;  // absent if the weights are tied
};

/// Wraps Seq2Seq in the interfaces of nn/model.h. A "token" of its estimates is a target token and the source token
/// that comes with it: sources are taken to be as long as targets.
class Seq2SeqModel final : public Generator {
 public:
  Seq2SeqModel(const Scope& scope, const Seq2SeqConfig& config) : seq2seq(scope, config) {}

  const char* kind() const override { return "seq2seq"; }
  Tensor loss(const Batch& batch, const CrossEntropy& options, State* = nullptr) const override {
    return seq2seq.loss(batch, options);
  }
  /// Three attentions per layer: of an encoder block, and the two of a decoder block. The parameters of both sides
  /// count once, because a token goes through either side once.
  double attention_flop(std::int64_t length) const override { return 3 * maki::attention_flop(seq2seq.config, length); }
  /// For `batch` pairs of `length` source and `length` target tokens.
  std::int64_t activation_bytes(std::int64_t batch, std::int64_t length) const override;
  std::unique_ptr<State> start(std::int64_t batch, const Tensor& source = {},
                               const Tensor& source_mask = {}) const override;
  Tensor next_logits(const Tensor& ids, State& state) const override;

  Seq2Seq seq2seq;
};

}  // namespace maki
