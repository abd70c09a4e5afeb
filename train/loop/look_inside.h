// What is inside a trained model while it reads a text: the vectors that enter it, one head of its attention, and what
// it would predict if it ended after each of its blocks (the "logit lens": nostalgebraist 2020, "interpreting GPT: the
// logit lens").
//
// Shapes: T tokens of width C, V = vocabulary, L blocks, heads of D columns of values and F columns of queries and keys
// (F = D, except for the features of linear attention).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nn/generate/log_probabilities.h"
#include "train/run/loaded_model.h"

namespace maki {

/// The most tokens of a text that is looked at: a picture of more would show nothing.
inline constexpr std::int64_t kMaxInsideTokens = 128;

struct InsideOptions {
  std::int64_t layer = 0, head = 0;  ///< of the attention, counted from 0
  std::int64_t top = 5;              ///< tokens for each prediction, at least 1
  double temperature = 1;            ///< by which logits are divided before a softmax, above 0
};

/// One head of the self-attention of one layer. All tensors are float64.
struct InsideAttention {
  std::int64_t layer, head, layers, heads;
  bool causal;  ///< no query attends to later keys
  /// Whether weights are φ(q)·φ(k) over their sum, and not softmax(q·k · scale). Queries and keys are then φ(q) and
  /// φ(k).
  bool linear;
  Tensor query, key;  ///< [T, F]: what the product takes, after norms and rotation; keys of the group of this head
  Tensor value;       ///< [T, D]
  double scale;       ///< 1/√D; 1 if attention is linear
  Tensor scores;      ///< [T, T]: scale · query · keyᵀ of all pairs, also of those that a causal model masks
  Tensor weights;     ///< [T, T], 0 where a query does not attend to a key
  Tensor output;      ///< [T, D]: what the model's attention gave, weights · value
};

struct InsideModel {
  std::vector<std::int32_t> ids;
  std::vector<std::string> tokens;  ///< as bytes
  Tensor embedding;                 ///< [T, C]: the vector of each token alone
  Tensor positions;                 ///< [T, C]: what is added to it; empty if its position is not such a vector
  std::string position_kind;        ///< ForwardParts::position_kind
  std::optional<InsideAttention> attention;  ///< absent from a model whose weights are not seen (observe_attention())
  /// The most probable tokens in place l, t: after l of the L blocks, at token t, which predicts the token that follows
  /// it, or in a masked language model itself. To every layer is applied what the model applies to the last one: final
  /// norm, head and prior. Empty for a model that predicts no tokens.
  std::vector<std::vector<std::vector<LogProbability>>> predictions;
  Tensor
      logits;  ///< [V]: of the last token after all blocks, not divided by the temperature; empty without predictions
};

/// Whether look_inside() can show models of this configuration: those that read one text.
bool can_look_inside(const Config& config);

/// All of that in one forward pass, as the model computes it in generation: without dropout. Throws Error for a model
/// that cannot be shown, for no ids, for more than kMaxInsideTokens or block_size, for an id outside the vocabulary,
/// and for an option that is out of range, with the name of its field; CheckpointError and std::logic_error as
/// attention_maps() does, and BadLogitsError if logits are NaN.
///
/// Thread safety: may be called on several threads at once.
InsideModel look_inside(const LoadedModel& loaded, const std::vector<std::int32_t>& ids, const InsideOptions& options);

}  // namespace maki
