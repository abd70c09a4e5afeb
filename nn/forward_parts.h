// The forward pass of a Transformer, taken apart: for programs that look inside a trained model.
//
// Shapes: B sequences of T tokens of width C, L blocks, V = vocab_size.
#pragma once

#include <functional>
#include <vector>

#include "autograd/tensor.h"

namespace maki {

/// What a model computes on the way from ids [B, T] to its logits (Model::forward_parts()).
struct ForwardParts {
  Tensor embedding;           ///< [B, T, C]: the vector of each token alone
  Tensor positions;           ///< [T, C]: what is added to it; empty if its position is not such a vector
  const char* position_kind;  ///< "learned", "sinusoidal", "rotary", "none", or "relative" for distances
  /// [B, T, C] each: the residual stream after 0, 1, …, L blocks. The first is the sum of the vectors above and of
  /// n-gram embeddings, if there are any.
  std::vector<Tensor> streams = {};
  /// What the model does after its last block, applied to a stream: final norm and output head, and the prior of the
  /// ids, if the model has one: [B, T, C] → [B, T, V]. The result for the last stream is the model's own. Empty for a
  /// model that predicts no tokens. Requires: the model exists.
  std::function<Tensor(const Tensor& stream)> logits = {};
};

/// layer(i, x), block i of a model, which also appends to `streams` what enters the first block and what leaves each.
template <class Layer>
auto keeping_streams(std::vector<Tensor>& streams, const Layer& layer) {
  return [&streams, layer](std::size_t i, const Tensor& x) {
    if (i == 0) streams.push_back(x);
    return streams.emplace_back(layer(i, x));
  };
}

}  // namespace maki
