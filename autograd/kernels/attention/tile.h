// One tile of work of the attention kernels, as plain pointers, and the layout of its scratch: the interface between
// the portable code and the code that is compiled once per SIMD target.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "autograd/core/philox.h"

namespace maki::kernels {

/// Keys per block of the online softmax: so many that the sums are seldom rescaled, so few that a packed block (16 KiB
/// of float32 for heads of 64 columns) stays in the level-1 cache. The result's bits depend on it, so it must not
/// change.
inline constexpr std::int64_t kKeyBlock = 64;
/// The maximum number of queries (of one head) in a tile of the forward and of the backward pass. All queries of a tile
/// use the same packed copy of a key block, so larger tiles pack less; the scores of a tile (32 and 16 KiB of float32)
/// must stay in the caches. Backward's scratch requires that kBackwardTileQueries divides kKeyBlock.
inline constexpr std::int64_t kForwardTileQueries = 128, kBackwardTileQueries = 64;
/// Rows and columns of scratch are padded to a multiple of this, which every register tile and vector size divides.
inline constexpr std::int64_t kPaddingMultiple = 16;

struct DropoutRule {
  const RandomStream* stream = nullptr;  ///< null: no dropout
  std::uint32_t threshold = 0;           ///< weights whose random word is below this are dropped: ⌊p · 2³²⌋
  double factor = 1;                     ///< multiplies the weights that are kept
};

inline DropoutRule dropout_rule(const RandomStream* stream, double p) {
  return {stream, static_cast<std::uint32_t>(p * 4294967296.0), 1 / (1 - p)};
}

/// How many of the first keys determine the origin (attention.h), which is subtracted from all keys, of a row that sees
/// at least as many. The origin is their median, which three outliers among seven cannot spoil. The result's bits
/// depend on it, so it must not change.
inline constexpr int kKeysForOrigin = 7;

/// The positions of the first keys, at most kKeysForOrigin, that a mask [keys] lets through (a null mask: all of them).
struct FirstKeys {
  int count = 0;
  std::array<std::int64_t, kKeysForOrigin> at{};
};

inline FirstKeys first_keys(const std::int32_t* mask, std::int64_t keys) {
  FirstKeys found;
  for (std::int64_t s = 0; s < keys && found.count < kKeysForOrigin; ++s) {
    if (mask == nullptr || mask[s] != 0) found.at[static_cast<std::size_t>(found.count++)] = s;
  }
  return found;
}

/// The position term of one head (RelativeRows in attention.h). The rows are in descending order of distance, so that
/// the keys of a query, from the first one on, meet consecutive rows: query t and key s meet row first − t + s.
template <class T>
struct TileDistances {
  const T* rows = nullptr;    ///< of distance keys − 1, followed by keys − 1 others; null: no position term
  std::int64_t stride = 0;    ///< of the rows, negative
  std::int64_t first = 0;     ///< the row at which the first query of the tile meets key 0
  const T* origin = nullptr;  ///< [head_size], is subtracted from every row
  const T *minus_u = nullptr, *minus_v = nullptr;  ///< [head_size]

  explicit operator bool() const { return rows != nullptr; }
};

/// One head of one sequence, and a range of its queries.
template <class T>
struct AttentionTile {
  const T* q;  ///< the first query of the tile
  const T* k;  ///< key 0
  const T* v;
  std::int64_t q_stride, k_stride, v_stride;
  std::int64_t queries, keys, head_size;
  std::int64_t last_key;         ///< the last key that the first query sees; below 0: none
  std::int64_t last_key_step;    ///< 1 if causal, where each query sees one key more than the one before; else 0
  const std::int32_t* key_mask;  ///< [keys] or null
  FirstKeys first_keys;          ///< of key_mask
  double scale;
  DropoutRule dropout;
  std::uint64_t first_weight;  ///< index of weight (first query, key 0) in the dropout stream
  bool rounds_operands;        ///< to bfloat16
  TileDistances<T> distances;

  /// The first query that sees at least `count` keys, 1 <= count <= kKeysForOrigin; `queries` if none does.
  std::int64_t first_row_that_sees(int count) const {
    if (first_keys.count < count) return queries;
    const std::int64_t missing = first_keys.at[static_cast<std::size_t>(count - 1)] - last_key;
    if (last_key_step == 0) return missing <= 0 ? 0 : queries;
    return std::clamp<std::int64_t>(missing, 0, queries);
  }
};

/// A tile of forward: up to kForwardTileQueries queries of one head.
template <class T>
struct AttentionForwardTile : AttentionTile<T> {
  T* y;
  std::int64_t y_stride;
  T* lse;  ///< [queries] or null
};

/// How a gradient is delivered; stream: it is stored past the caches (simd/stream.h).
enum class Delivery : std::uint8_t { store, stream, add };

/// The rows of a gradient, `stride` elements apart; data is null if it is not wanted.
template <class T>
struct GradientRows {
  T* data = nullptr;
  std::int64_t stride = 0;
  Delivery by = Delivery::store;

  explicit operator bool() const { return data != nullptr; }
  /// Of row r and column c on.
  GradientRows from(std::int64_t r, std::int64_t c = 0) const { return {data + r * stride + c, stride, by}; }
};

/// A whole head of one sequence, with all its queries.
template <class T>
struct AttentionBackwardHead : AttentionTile<T> {
  const T *y, *dy, *lse;
  std::int64_t y_stride, dy_stride;
  GradientRows<T> dq, dk, dv;
  GradientRows<T> position_dq, dr;  ///< of the position term; dr begins with the gradient of the first of its rows
};

constexpr std::int64_t padded(std::int64_t n) {
  return (n + kPaddingMultiple - 1) / kPaddingMultiple * kPaddingMultiple;
}

/// Numbers of columns. A window has the distances that the queries of a tile meet in a block of keys. The position
/// scores of a group of rows have up to kPaddingMultiple columns more than a block has keys; see relative-inl.h.
inline constexpr std::int64_t kDistanceWindowColumns = kForwardTileQueries + kKeyBlock + kPaddingMultiple;
inline constexpr std::int64_t kPositionScoreColumns = kKeyBlock + kPaddingMultiple;

/// Elements of scratch that the position term needs beside that of a tile of forward: its queries, a window, and the
/// position scores of a group of rows.
constexpr std::int64_t relative_tile_scratch(std::int64_t head_size) {
  return (kForwardTileQueries + kDistanceWindowColumns) * padded(head_size) + kPaddingMultiple * kPositionScoreColumns;
}

/// Elements of scratch for one tile of forward, every part starting on a cache line.
constexpr std::int64_t forward_tile_scratch(std::int64_t head_size) {
  const std::int64_t d = padded(head_size);
  return 2 * kForwardTileQueries * d                       // q and y
         + kForwardTileQueries * (kPaddingMultiple + 2)    // per row: sums by lane, maximum, sum
         + kKeyBlock * (2 * d)                             // kᵀ, v
         + kPaddingMultiple * (kKeyBlock + 2) + kKeyBlock  // p, new maxima, α of a group of rows; keep of one
         + 3 * d;                                          // origins
}

/// The queries and keys of a head that one piece of the backward pass covers, and the distances that it packs and
/// delivers; all begin at multiples of kKeyBlock.
struct AttentionPiece {
  std::int64_t query_begin, query_end, key_begin, key_end, distance_begin, distance_end;
};

/// What to do with a piece: `start` packs its rows, `sweep` computes its pairs of queries and keys, `finish` delivers
/// the gradients of its rows; `all` does the three in turn.
enum class BackwardPhase : std::uint8_t { start, sweep, finish, all };

/// The scratch of one head in backward: packed copies of its rows, and its gradients while they are being summed.
/// d = padded(head_size); t and s are queries and keys rounded up to multiples of kKeyBlock.
template <class T>
struct AttentionHeadScratch {
  T *q, *dy, *dq, *row_sum;            // [t, d] three times; [t]
  T *k, *dk, *dv, *kt, *vt;            // [s, d] three times; kᵀ and vᵀ of each block, [s / kKeyBlock, d, kKeyBlock]
  T *q_finite, *dy_finite, *k_finite;  // 1 if the tile of queries or block of keys is finite, else 0

  AttentionHeadScratch(T* at, std::int64_t queries, std::int64_t keys, std::int64_t head_size)
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
        dy_finite(q_finite + rows(queries) / kBackwardTileQueries),
        k_finite(dy_finite + rows(queries) / kBackwardTileQueries) {}

  static constexpr std::int64_t rows(std::int64_t n) { return (n + kKeyBlock - 1) / kKeyBlock * kKeyBlock; }
  static constexpr std::int64_t size(std::int64_t queries, std::int64_t keys, std::int64_t head_size) {
    return rows(queries) * (3 * padded(head_size) + 1) + rows(keys) * 5 * padded(head_size) +
           padded(2 * rows(queries) / kBackwardTileQueries + rows(keys) / kKeyBlock);
  }
};

/// The part of a head's scratch in backward that the position term needs. Before and after the rows of r are
/// kPaddingMultiple rows of zeros; dr has none.
template <class T>
struct RelativeHeadScratch {
  T *q, *dq;             // [t, d] twice
  T *r, *dr, *r_finite;  // [s, d] twice; 1 if a block of kKeyBlock distances is finite, else 0

  RelativeHeadScratch(T* at, std::int64_t queries, std::int64_t keys, std::int64_t head_size)
      : q(at),
        dq(q + rows(queries) * padded(head_size)),
        r(dq + (rows(queries) + kPaddingMultiple) * padded(head_size)),
        dr(r + (rows(keys) + kPaddingMultiple) * padded(head_size)),
        r_finite(dr + rows(keys) * padded(head_size)) {}

  static constexpr std::int64_t rows(std::int64_t n) { return AttentionHeadScratch<T>::rows(n); }
  static constexpr std::int64_t size(std::int64_t queries, std::int64_t keys, std::int64_t head_size) {
    return 2 * (rows(queries) + rows(keys) + kPaddingMultiple) * padded(head_size) + padded(rows(keys) / kKeyBlock);
  }
};

/// Elements of scratch for one worker of backward that the position term needs: a window, the position scores of a
/// group of rows, and ds by distance, [kBackwardTileQueries, kDistanceWindowColumns].
constexpr std::int64_t relative_scratch(std::int64_t head_size) {
  return kDistanceWindowColumns * padded(head_size) + kPaddingMultiple * kPositionScoreColumns +
         kBackwardTileQueries * kDistanceWindowColumns;
}

/// Elements of scratch for one worker of backward: weights and their gradients, [kBackwardTileQueries, kKeyBlock] each,
/// one row of dropout factors [kKeyBlock], and the three origins of the keys and of the values.
constexpr std::int64_t backward_scratch(std::int64_t head_size) {
  return 2 * kBackwardTileQueries * kKeyBlock + kKeyBlock + 6 * padded(head_size);
}

}  // namespace maki::kernels
