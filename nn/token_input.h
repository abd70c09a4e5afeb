// What enters the first block of a model: token embeddings, positions and n-gram embeddings. Section numbers refer to
// Vaswani et al. 2017, arXiv:1706.03762.
//
// Thread safety and lifetime: the same as for layers (nn/layers.h).
#pragma once

#include <memory>
#include <optional>

#include "nn/layers.h"
#include "nn/ngram.h"
#include "nn/positions.h"

namespace maki {

struct TokenInputOptions {
  std::int64_t n_embd = 0, block_size = 0;      ///< block_size: how many positions are learned; else not used
  Positions positions = Positions::sinusoidal;  ///< rotary ones, which attention adds, count as none here
  double base = 10000;                          ///< of sinusoidal positions, above 1
  double factor = 1;                            ///< of the token embeddings: √C in section 3.4
  double std = kInitStd;                        ///< of the initial learned positions
  std::int64_t vocab_size = 0;                  ///< of the n-grams; without them, it is not needed
  NgramOptions ngram = {};                      ///< default: none
};

/// x = factor · table[ids] + positions [+ ngram(ids)]: ids [B, T] int32 and table [V, C] → [B, T, C].
struct TokenInput {
  /// Creates wpe, [block_size, C], if positions are learned, and `ngram` if there are orders.
  TokenInput(const Scope& scope, const TokenInputOptions& options);
  /// The first token is at position `start`, after the tokens `before` [B, m] (empty: none are known), with which its
  /// n-grams begin. Throws Error, with the name of the model, for ids of another type or shape and for tokens beyond
  /// the learned positions; and if an id is outside [0, V).
  Tensor operator()(const char* model, const Tensor& table, const Tensor& ids, std::int64_t start = 0,
                    const Tensor& before = {}) const;

  /// Elements of the n-gram embeddings.
  std::int64_t ngram_parameter_count() const { return ngram ? ngram->weight.shape().numel() : 0; }

  TokenInputOptions options;
  std::optional<Embedding> wpe;
  std::shared_ptr<const PositionTable> sinusoids;  // null for other positions
  std::optional<NgramEmbedding> ngram;
};

/// A padding mask [B, S] of ids [B, S], 0 at padding, as attention needs it: empty if it hides nothing. Throws Error,
/// with the name of the model, if ids are not int32 [B, S] with S >= 1, if the mask has another shape or type, and if
/// it hides all tokens of a sequence. An empty mask is returned as it is.
Tensor checked_padding_mask(const char* model, const Tensor& ids, const Tensor& mask);

}  // namespace maki
