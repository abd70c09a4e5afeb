// The bidirectional Transformer encoder of BERT: Devlin et al. 2019, arXiv:1810.04805. Every token sees every other
// token except padding.
//
//   x = wte(ids) + wpe(positions) [+ ngram(ids)];   for each block: x += attn(ln_1(x)); x += mlp(ln_2(x));
//   hidden = ln_f(x)
//   masked language model: logits = hidden · wteᵀ at the masked tokens      classifier: head(mean of hidden)
//
// Shapes: B sequences, T tokens, C = n_embd, V = vocab_size.
//
// Thread safety: the const member functions may be called on several threads at once while no value changes; each
// thread needs its own tape.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "autograd/recompute.h"
#include "nn/model.h"
#include "nn/token_input.h"
#include "nn/transformer.h"

namespace maki {

/// How the names of the parameters begin that belong to the classes.
inline constexpr std::string_view kClassifierParameters = "classifier.";

/// ngram_prior has no effect.
struct EncoderConfig : TransformerConfig {
  std::int64_t classes = 0;  ///< 0: a masked language model; otherwise a classifier of sequences into as many classes
};

struct Encoder {
  /// Creates the parameters below `scope`, with the initial values of Gpt. Throws Error for classes below 0, and what
  /// the constructor of Gpt throws.
  ///
  /// Requires: the store of `scope` outlives the model, and is sealed before the model computes anything.
  Encoder(const Scope& scope, const EncoderConfig& config);

  /// A vector for each token in its context: ids [B, T] int32 and their mask [B, T] int32, 0 at padding (empty: no
  /// padding) → [B, T, C]. Throws Error if an id is outside [0, V), for more tokens than learned positions, and for a
  /// mask of another shape or one that hides all tokens of a sequence.
  Tensor hidden(const Tensor& ids, const Tensor& mask = {}) const;

  /// hidden() without a mask, but with layer(i, x) instead of block i.
  template <class Layer>
  Tensor hidden_through(const Tensor& ids, const Layer& layer) const {
    Tensor x = drop(input("encoder", wte.weight, ids));
    for (std::size_t i = 0; i < h.size(); ++i) {
      const auto block = [layer, i](const Tensor& entering) { return layer(i, entering); };
      x = config.recompute_blocks ? recompute(x, block) : block(x);
    }
    return ln_f ? (*ln_f)(x) : x;
  }

  /// What the masked language model expects at every token: [B, T] → [B, T, V]. Throws Error if there are classes.
  Tensor logits(const Tensor& ids, const Tensor& mask = {}) const;
  /// The logits of some tokens alone: `rows` [n] int32 are their indices b·T + t among the B·T tokens → [n, V]. All
  /// tokens go through the blocks; only the product with the head is smaller.
  Tensor logits_at(const Tensor& rows, const Tensor& ids, const Tensor& mask = {}) const;
  /// Logits of the classes: [B, T] → [B, classes]. A sequence is represented by the mean of its tokens without padding:
  /// Reimers and Gurevych 2019 (arXiv:1908.10084) found it better than the first token, and it needs no token that
  /// stands for the sequence. Throws Error if there are no classes.
  Tensor class_logits(const Tensor& ids, const Tensor& mask = {}) const;

  /// Cross-entropy, in nats: []. Of a masked language model, of batch.targets [B, T] at the tokens that are to be
  /// predicted; the others have the target CrossEntropy::ignored, and their logits are not computed. 0 if no token is
  /// to be predicted. Of a classifier, of batch.targets [B] or [B, 1]. batch.source_mask is the mask of batch.ids.
  /// Throws Error for targets of another shape, and what hidden() throws.
  Tensor loss(const Batch& batch, const CrossEntropy& options = {}) const;

  /// The weight of the output head, [V, C], of a masked language model.
  const Parameter& head_weight() const { return lm_head ? lm_head->weight : wte.weight; }

  EncoderConfig config;
  DType dtype;  // of the parameters
  Dropout drop;
  Embedding wte;
  TokenInput input;
  std::vector<Block> h;
  std::optional<Norm> ln_f;          // absent in post-norm order, where the last block ends in a norm
  std::optional<Linear> lm_head;     // of a masked language model whose weights are not tied
  std::optional<Linear> classifier;  // if there are classes
};

/// Wraps Encoder in the interfaces of nn/model.h.
class EncoderModel final : public Model {
 public:
  EncoderModel(const Scope& scope, const EncoderConfig& config) : encoder(scope, config) {}

  const char* kind() const override { return "encoder"; }
  const Encoder* as_encoder() const override { return &encoder; }
  Tensor loss(const Batch& batch, const CrossEntropy& options, State* = nullptr) const override {
    return encoder.loss(batch, options);
  }
  std::optional<ForwardParts> forward_parts(const Tensor& ids) const override;
  double attention_flop(std::int64_t length) const override { return maki::attention_flop(encoder.config, length); }
  /// If three in ten tokens are predicted.
  std::int64_t activation_bytes(std::int64_t batch, std::int64_t length) const override;

  Encoder encoder;
};

}  // namespace maki
