// Short convolutions over the inputs of attention and feed-forward: each column of a token is mixed with the same
// column of the last few tokens, or where later tokens may be seen, of those around it. One layer of attention can then
// compare what stands before its keys with the query, for which it otherwise needs the help of the layer below. So et
// al. 2021, arXiv:2109.08668 (Primer), section 4; Allen-Zhu 2025, "Physics of Language Models: Part 4.1" (Canon
// layers).
//
// Thread safety and lifetime: the same as for layers (nn/layers.h).
#pragma once

#include <cstdint>
#include <span>

#include "nn/layers.h"

namespace maki {

/// The most tokens that a convolution mixes, far above the usual 3 or 4.
inline constexpr std::int64_t kMaxConvWidth = 64;

/// short_conv(x, weight, ahead): [B, T, C] → [B, T, C], with weight [width, C]. Initially the weight of the token
/// itself is 1, and those of the width − 1 others are drawn from N(0, 1 / (width − 1)), so that together they weigh as
/// much. There is no weight decay, which would pull all of them to 0.
struct ShortConv {
  /// A causal convolution sees no later token, another as many as earlier ones, or with an even width one more. Throws
  /// Error unless 2 <= width <= kMaxConvWidth.
  ShortConv(const Scope& scope, std::int64_t n_embd, std::int64_t width, bool causal);
  /// `recent`, if not null, are the tokens before x, [B, m, C] with m < width, or an empty handle; they become the last
  /// width − 1 of both together. Throws Error inside a Recording if there are such tokens. Requires: `recent` is null
  /// unless the convolution is causal.
  Tensor operator()(const Tensor& x, Tensor* recent = nullptr) const;

  std::int64_t ahead;  // how many later tokens it sees
  Parameter& weight;
};

/// The last inputs of the two convolutions of a block, which generation keeps; empty handles at first.
struct RecentInputs {
  Tensor attention = {}, feed_forward = {};
  void clear() { attention = feed_forward = {}; }
  /// Sequence i becomes the former sequence rows[i]. Requires: each row is in [0, B).
  void reorder(std::span<const std::int32_t> rows);
};

}  // namespace maki
