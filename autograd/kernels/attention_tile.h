// What the two attention kernels hand to the code of a SIMD target: one tile of work, as plain pointers.
#pragma once

#include <cstdint>

#include "autograd/core/philox.h"

namespace maki::kernels {

/// Keys in a block of the online softmax. Part of the bits: it stays.
inline constexpr std::int64_t kKeyBlock = 64;
/// Queries that share the packing of a key block: forward, backward.
inline constexpr std::int64_t kForwardTile = 128, kBackwardTile = 64;
/// Rows and columns of scratch are padded to this: a multiple of every register tile and vector.
inline constexpr std::int64_t kPadding = 16;

struct DropoutRule {
  const RandomStream* stream = nullptr;  ///< null: no dropout
  std::uint32_t threshold = 0;           ///< dropped below
  double factor = 1;                     ///< of the weights that stay
};

inline DropoutRule dropout_rule(const RandomStream* stream, double p) {
  return {stream, static_cast<std::uint32_t>(p * 4294967296.0), 1 / (1 - p)};
}

/// One head of one sequence, and a range of its queries.
template <class T>
struct AttentionTile {
  const T* q;  ///< the first query of the tile
  const T* k;  ///< key 0
  const T* v;
  std::int64_t q_stride, k_stride, v_stride;
  std::int64_t queries, keys, head_size;
  std::int64_t last_key;         ///< the last key that the first query sees
  std::int64_t last_key_step;    ///< 1 for causal: the next query sees one more; else 0
  const std::int32_t* key_mask;  ///< [keys] or null
  double scale;
  DropoutRule dropout;
  std::uint64_t first_weight;  ///< number of (first query, key 0) in the dropout stream
};

template <class T>
struct AttentionForwardTile : AttentionTile<T> {
  T* y;
  std::int64_t y_stride;
  T* lse;  ///< [queries] or null
};

template <class T>
struct AttentionBackwardTile : AttentionTile<T> {
  const T *y, *dy, *lse;
  T *dq, *dk, *dv;  ///< null: not wanted
  std::int64_t y_stride, dy_stride, dq_stride, dk_stride, dv_stride;
  bool add_dq, add_dk, add_dv;
};

constexpr std::int64_t padded(std::int64_t n) { return (n + kPadding - 1) / kPadding * kPadding; }

/// Elements of scratch for a tile, all parts on cache lines.
constexpr std::int64_t forward_tile_scratch(std::int64_t head_size) {
  const std::int64_t d = padded(head_size);
  return 2 * kForwardTile * d + kForwardTile * (kPadding + 2)  // q, y, sums by lane, maximum, sum
         + kKeyBlock * (2 * d)                                 // kᵀ, v
         + kPadding * (kKeyBlock + 2) + kKeyBlock;             // weights of a group, its new maxima and factors, keep
}
constexpr std::int64_t backward_tile_scratch(std::int64_t queries, std::int64_t head_size) {
  const std::int64_t d = padded(head_size), t = padded(queries);
  return 3 * t * d + t                                 // q, dy, dq, row sums of y ∘ dy
         + kKeyBlock * (5 * d)                         // kᵀ, vᵀ, k, dk, dv
         + 2 * kBackwardTile * kKeyBlock + kKeyBlock;  // weights, their gradients, keep
}

}  // namespace maki::kernels
