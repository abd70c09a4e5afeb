// What the two attention kernels hand to the code of a SIMD target: one tile of work, as plain pointers.
#pragma once

#include <algorithm>
#include <array>
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

/// How many of the first keys decide the origin of a row that sees at least as many. Part of the bits: it stays.
inline constexpr int kOriginKeys = 7;

/// The positions of the first keys that a mask [keys] lets through (null: all of them), at most kOriginKeys.
struct FirstKeys {
  int count = 0;
  std::array<std::int64_t, kOriginKeys> at{};
};

inline FirstKeys first_keys(const std::int32_t* mask, std::int64_t keys) {
  FirstKeys found;
  for (std::int64_t s = 0; s < keys && found.count < kOriginKeys; ++s) {
    if (mask == nullptr || mask[s] != 0) found.at[static_cast<std::size_t>(found.count++)] = s;
  }
  return found;
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
  FirstKeys first_keys;          ///< of key_mask
  double scale;
  DropoutRule dropout;
  std::uint64_t first_weight;  ///< number of (first query, key 0) in the dropout stream

  /// The first query that sees at least `count` keys, 1 <= count <= kOriginKeys; `queries` where none does.
  std::int64_t first_row_that_sees(int count) const {
    if (first_keys.count < count) return queries;
    const std::int64_t missing = first_keys.at[static_cast<std::size_t>(count - 1)] - last_key;
    if (last_key_step == 0) return missing <= 0 ? 0 : queries;
    return std::clamp<std::int64_t>(missing, 0, queries);
  }
};

template <class T>
struct AttentionForwardTile : AttentionTile<T> {
  T* y;
  std::int64_t y_stride;
  T* lse;  ///< [queries] or null
};

/// A whole head: its `queries` are all there are.
template <class T>
struct AttentionBackwardHead : AttentionTile<T> {
  const T *y, *dy, *lse;
  T *dq, *dk, *dv;  ///< null: not wanted
  std::int64_t y_stride, dy_stride, dq_stride, dk_stride, dv_stride;
  bool add_dq, add_dk, add_dv;
};

constexpr std::int64_t padded(std::int64_t n) { return (n + kPadding - 1) / kPadding * kPadding; }

/// Elements of scratch for a tile of the forward, all parts on cache lines.
constexpr std::int64_t forward_tile_scratch(std::int64_t head_size) {
  const std::int64_t d = padded(head_size);
  return 2 * kForwardTile * d + kForwardTile * (kPadding + 2)  // q, y, sums by lane, maximum, sum
         + kKeyBlock * (2 * d)                                 // kᵀ, v
         + kPadding * (kKeyBlock + 2) + kKeyBlock              // weights of a group, its new maxima and factors, keep
         + 3 * d;                                              // origins
}

/// Queries and keys of a head that one piece of backward's work covers; both begin on multiples of kKeyBlock.
struct AttentionPiece {
  std::int64_t query_begin, query_end, key_begin, key_end;
};

/// Packing a piece's rows, the pairs of a piece, delivering the gradients of a piece's rows; or all three.
enum class BackwardPhase : std::uint8_t { start, sweep, finish, all };

/// What backward keeps of a head: packed copies of its rows and the gradients on their way.
/// d = padded(head_size), t = padded(queries), s = keys rounded up to whole blocks.
template <class T>
struct AttentionPanel {
  T *q, *dy, *dq, *row_sum;            // [t, d] three times, [t]
  T *k, *dk, *dv, *kt, *vt;            // [s, d] three times; a block of each transposed, [d, kKeyBlock], after another
  T *q_finite, *dy_finite, *k_finite;  // 1 or 0 for each tile of queries, each block of keys

  AttentionPanel(T* at, std::int64_t queries, std::int64_t keys, std::int64_t head_size)
      : q(at),
        dy(q + rows(queries) * padded(head_size)),
        dq(dy + rows(queries) * padded(head_size)),
        row_sum(dq + rows(queries) * padded(head_size)),
        k(row_sum + rows(queries)),
        dk(k + rows(keys) * padded(head_size)),
        dv(dk + rows(keys) * padded(head_size)),
        kt(dv + rows(keys) * padded(head_size)),
        vt(kt + rows(keys) * padded(head_size)),
        q_finite(vt + rows(keys) * padded(head_size)),
        dy_finite(q_finite + rows(queries) / kBackwardTile),
        k_finite(dy_finite + rows(queries) / kBackwardTile) {}

  static constexpr std::int64_t rows(std::int64_t n) { return (n + kKeyBlock - 1) / kKeyBlock * kKeyBlock; }
  static constexpr std::int64_t size(std::int64_t queries, std::int64_t keys, std::int64_t head_size) {
    return rows(queries) * (3 * padded(head_size) + 1) + rows(keys) * 5 * padded(head_size) +
           padded(2 * rows(queries) / kBackwardTile + rows(keys) / kKeyBlock);
  }
};

/// Elements of scratch of one worker of backward: weights and their gradients, [kBackwardTile, kKeyBlock] each, a row
/// of dropout factors, and the origins of keys and of values.
constexpr std::int64_t backward_scratch(std::int64_t head_size) {
  return 2 * kBackwardTile * kKeyBlock + kKeyBlock + 6 * padded(head_size);
}

}  // namespace maki::kernels
