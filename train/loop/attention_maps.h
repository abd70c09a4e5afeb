// The attention weights of a trained model on a text: what `maki attend` draws.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nn/attention_weights.h"
#include "train/run/loaded_model.h"

namespace maki {

/// The weights of every layer and head of one kind of attention.
struct AttentionMaps {
  /// "self"; of a model that reads a source: "encoder", "decoder" (both self-attention) or "cross".
  std::string kind;
  bool causal = false;  ///< no query attends to later keys
  /// The tokens, as bytes. The queries of "cross" are the tokens that the decoder writes there, the others those that
  /// it reads.
  std::vector<std::string> queries, keys;
  /// [H, T, S] float64 each. The weights of a query sum to 1, or to less where the floor of linear attention acts.
  std::vector<Tensor> layers;
};

/// The tokens of ids, as bytes; the first id after those of the tokenizer is kMask (data/dataset/masking.h).
std::vector<std::string> token_bytes(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids);

/// The options of the self-attention of a model that reads one text.
WeightOptions self_attention_options(const LoadedModel& loaded);
/// attention_weights() of a call with B = 1, [H, T, S], after comparing what they give with what the op gave: a picture
/// of other weights than those of the model would be a defect. Throws what attention_maps() throws.
Tensor checked_attention_weights(const LoadedModel& loaded, const ObservedAttention& call,
                                 const WeightOptions& options);

/// The kinds that a model has; the first is the default.
std::vector<std::string> attention_kinds(const LoadedModel& loaded);
/// Whether the weights of a kind depend on what a model writes that reads a source: not those of its encoder. Requires:
/// `kind` is one of the attention_kinds() of such a model.
bool depends_on_target(const std::string& kind);

/// The most tokens of a text whose weights are computed: they are layers · heads · tokens² numbers, 38 million of
/// GPT-2.
inline constexpr std::int64_t kMaxAttendedTokens = 512;

/// The weights of a model that reads one text. Throws Error for no token, for more than kMaxAttendedTokens, and for a
/// model whose attention is not seen (observe_attention()), CheckpointError if the weights are not finite, and
/// std::logic_error if they do not give what the model computed, which would be a defect of maki. Requires:
/// attention_kinds() is {"self"}.
AttentionMaps attention_maps(const LoadedModel& loaded, const std::vector<std::int32_t>& ids);

/// The weights of one kind of a model that reads `source` and writes `target`, both without end tokens; `target` may be
/// empty. Throws what the function above throws. Requires: `kind` is one of the three attention_kinds() of a model that
/// reads a source.
AttentionMaps attention_maps(const LoadedModel& loaded, const std::string& kind,
                             const std::vector<std::int32_t>& source, const std::vector<std::int32_t>& target);

}  // namespace maki
