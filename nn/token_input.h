// What enters the first block of a model: token embeddings, positions and n-gram embeddings. Section numbers refer to
// Vaswani et al. 2017, arXiv:1706.03762.
//
// Thread safety and lifetime: the same as for layers (nn/layers.h).
#pragma once

#include <memory>
#include <optional>

#include "nn/transformer_config.h"

namespace maki {

/// x = factor · table[ids] + positions [+ ngram(ids)]: ids [B, T] int32 and table [V, C] → [B, T, C].
struct TokenInput {
  /// Creates wpe, [block_size, C], drawn from N(0, std²), if positions are learned, and `ngram` if there are orders.
  /// Rotary positions, which attention adds, count as none here. Without `factor` and `std` they are those of Gpt: √C
  /// with sinusoidal positions, else 1, and kInitStd.
  TokenInput(const Scope& scope, const TransformerConfig& config);
  TokenInput(const Scope& scope, const TransformerConfig& config, double factor, double std);
  /// The first token is at position `start`, after the tokens `before` [B, m] (empty: none are known), with which its
  /// n-grams begin. Throws Error, with the name of the model, for ids of another type or shape and for tokens beyond
  /// the learned positions; and if an id is outside [0, V).
  Tensor operator()(const char* model, const Tensor& table, const Tensor& ids, std::int64_t start = 0,
                    const Tensor& before = {}) const;

  /// The first two terms: factor · table[ids], [B, T, C]; and the positions begin … end − 1, [end − begin, C], empty
  /// if there are none here. Requires: learned positions have them.
  Tensor tokens(const Tensor& table, const Tensor& ids) const;
  Tensor positions(std::int64_t begin, std::int64_t end) const;

  std::int64_t block_size;
  double factor;
  std::optional<Embedding> wpe;
  std::shared_ptr<const PositionTable> sinusoids;  // null for other positions
  std::optional<NgramEmbedding> ngram;
};

/// A padding mask [B, S] of ids [B, S], 0 at padding, as attention needs it: empty if it hides nothing. Throws Error,
/// with the name of the model, if ids are not int32 [B, S] with S >= 1, if the mask has another shape or type, and if
/// it hides all tokens of a sequence. An empty mask is returned as it is.
Tensor checked_padding_mask(const char* model, const Tensor& ids, const Tensor& mask);

}  // namespace maki
