// The position term of attention: (q_t + v)·r_d is added to the score of query t and key s, with the distance d =
// t + S − T − s (attention.h; causal, without a mask, S >= T). As r_d is packed, r_0 is subtracted from it, which
// changes all scores of a query by the same number. Compiled once per SIMD target.
//
// Distances are numbered in descending order, row S − 1 − d, so that the keys of a query meet consecutive rows. What a
// tile of n queries meets in a block of keys is a window of up to n + 63 rows: query x and key j of the block meet
// column n − 1 − x + j. Therefore the scores of a group of R queries by distance are one product with 64 + R − 1
// columns of the window, of which row x is read R − 1 − x columns further to the right than the last row:
//
//   window    c0 c1 c2 c3 c4 …
//   query 0            k0 k1 …
//   query 1         k0 k1 k2 …
//   query 2      k0 k1 k2 k3 …
//
// In backward ds is written in the same way, by query and column of the window, between zeros. With the packed queries
// x = scale · log₂ e · (q + v), this file adds ds r to dq and dsᵀ x to dr; finish_piece() (backward.cpp) multiplies dq
// by scale and dr by ln 2 as it delivers them.
#if defined(MAKI_KERNELS_ATTENTION_RELATIVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_ATTENTION_RELATIVE_INL_H_
#undef MAKI_KERNELS_ATTENTION_RELATIVE_INL_H_
#else
#define MAKI_KERNELS_ATTENTION_RELATIVE_INL_H_
#endif

#include <hwy/highway.h>

#include "autograd/kernels/attention/block_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The window of a tile of queries in a block of keys.
struct Window {
  std::int64_t queries = 0;           // of the tile, rounded up to whole groups
  std::int64_t keys = 0, lowest = 0;  // keys of the block; the row of distances in column 0, which may be negative

  Window() = default;
  /// Of queries [row, row + rows) of a tile, whose first one meets key 0 in row `first`, and keys [at, at + count).
  Window(std::int64_t first, std::int64_t row, std::int64_t rows, std::int64_t at, std::int64_t count)
      : queries((rows + kAttentionTileRows - 1) / kAttentionTileRows * kAttentionTileRows),
        keys(count),
        lowest(first - row - queries + 1 + at) {}

  std::int64_t columns() const { return queries - 1 + keys; }
  /// Where the first key meets query x of the tile. Its own inverse: the query that meets the first key in column x.
  std::int64_t column(std::int64_t x) const { return queries - 1 - x; }
};

/// to [head_size, kDistanceWindowColumns] = the columns of the window, with zeros where there is no such distance.
template <class T>
HWY_NOINLINE void pack_window(const AttentionTile<T>& tile, const Window& window, T* to) {
  const TileDistances<T>& from = tile.distances;
  const std::int64_t begin = std::clamp<std::int64_t>(-window.lowest, 0, window.columns());
  const std::int64_t end = std::clamp<std::int64_t>(tile.keys - window.lowest, begin, window.columns());
  const PackSource<T> source{from.rows + (window.lowest + begin) * from.stride, from.stride, nullptr, from.origin};
  pack_head_transposed<T, kDistanceWindowColumns>(source, end - begin, tile.head_size, to + begin);
  for (std::int64_t c = 0; c < tile.head_size; ++c) {
    T* const row = to + c * kDistanceWindowColumns;
    std::fill(row, row + begin, T{0});
    std::fill(row + end, row + window.columns() + kPaddingMultiple, T{0});
  }
}

/// s += the position scores of R rows of a tile, of which q [R, padded(head_size)] are the queries. `columns` are the
/// columns of the window from the one on where the last row meets the first key. scratch: [kPaddingMultiple,
/// kPositionScoreColumns].
template <int R, class T>
HWY_NOINLINE void add_position_scores(const T* q, std::int64_t head_size, const T* columns, const std::int64_t* visible,
                                      T* scratch, T* s) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kLanes = max_lanes<T>();
  const std::int64_t width = (visible[R - 1] + R - 1 + kLanes - 1) / kLanes * kLanes;
  product<R, false, Store::set>(width, head_size, q, padded(head_size), columns, kDistanceWindowColumns, scratch,
                                kPositionScoreColumns);
  for (int r = 0; r < R; ++r) {
    const T* const own = scratch + r * kPositionScoreColumns + R - 1 - r;
    T* const to = s + r * kKeyBlock;
    for (std::int64_t j = 0; j < visible[r]; j += kLanes) {
      hn::StoreU(hn::Add(hn::LoadU(d, to + j), hn::LoadU(d, own + j)), d, to + j);
    }
  }
}

/// The scratch of the position term for a tile of forward; see relative_tile_scratch().
template <class T>
struct RelativeTileScratch {
  T *q, *window;  // [kForwardTileQueries, d], [d, kDistanceWindowColumns]
  T* scores;      // [kPaddingMultiple, kPositionScoreColumns]

  RelativeTileScratch(T* at, std::int64_t d)
      : q(at), window(q + kForwardTileQueries * d), scores(window + d * kDistanceWindowColumns) {}
};

/// The position term of one tile of queries and one block of keys in backward.
template <class T>
struct PairDistances {
  Window window;
  const T* q;           // of the tile: scale · log₂ e · (q + v); null: no position term
  T* dq;                // of the tile
  const T* r;           // [columns of the window, d]
  T* dr;                // the same
  T *columns, *scores;  // scratch: [d, kDistanceWindowColumns], [kPaddingMultiple, kPositionScoreColumns]
  T* ds;                // scratch: [kBackwardTileQueries, kDistanceWindowColumns]
  bool q_finite, r_finite;
  std::int64_t begin = 0, end = 0;  // the columns of the window that are distances which the tile meets
};

/// Packs the window and sets ds to 0.
template <class T>
HWY_INLINE void start_distances(const AttentionTile<T>& tile, const PairDistances<T>& s) {
  pack_window(tile, s.window, s.columns);
  for (std::int64_t x = 0; x < s.window.queries; ++x) {
    T* const row = s.ds + x * kDistanceWindowColumns;
    std::fill(row, row + s.window.columns() + kPaddingMultiple, T{0});
  }
}

/// Writes ds of a group of rows of the tile, of which the first `rows` exist, by distance, and adds ds r to dq.
/// visible has kAttentionTileRows entries, also if fewer rows exist.
template <class T>
HWY_INLINE void distance_rows(const PairDistances<T>& s, std::int64_t row, std::int64_t rows, std::int64_t head_size,
                              const T* ds, const std::int64_t* visible) {
  constexpr std::int64_t kLanes = max_lanes<T>();
  const std::int64_t d = padded(head_size), columns = (head_size + kLanes - 1) / kLanes * kLanes;
  for (std::int64_t x = 0; x < rows; ++x) {
    std::copy_n(ds + x * kKeyBlock, visible[x], s.ds + (row + x) * kDistanceWindowColumns + s.window.column(row + x));
  }
  const std::int64_t first = s.window.column(row + kAttentionTileRows - 1);
  if (s.r_finite) {
    product<kAttentionTileRows, false, Store::add>(columns, visible[kAttentionTileRows - 1] + kAttentionTileRows - 1,
                                                   s.ds + row * kDistanceWindowColumns + first, kDistanceWindowColumns,
                                                   s.r + first * d, d, s.dq + row * d, d);
    return;
  }
  for (std::int64_t x = 0; x < rows; ++x) {  // row by row: each meets some distances that the others do not meet
    product<1, false, Store::add>(columns, visible[x], ds + x * kKeyBlock, kKeyBlock,
                                  s.r + s.window.column(row + x) * d, d, s.dq + (row + x) * d, d);
  }
}

/// Adds dsᵀ q to R rows of dr, from column `at` of the window on, over the queries that meet any of these columns.
template <int R, class T>
HWY_INLINE void add_distance_gradient(const PairDistances<T>& s, std::int64_t at, std::int64_t rows,
                                      std::int64_t columns, std::int64_t d) {
  const std::int64_t begin = std::max<std::int64_t>(s.window.column(at + R - 1), 0);
  const std::int64_t end = std::min(rows, s.window.column(at) + s.window.keys);
  product<R, true, Store::add>(columns, end - begin, s.ds + begin * kDistanceWindowColumns + at, kDistanceWindowColumns,
                               s.q + begin * d, d, s.dr + at * d, d);
}

/// Adds what the `rows` queries of a tile contribute to dr. Exactly the distances that they meet are written, because
/// another piece of the head may be adding to their neighbours.
template <class T>
HWY_INLINE void distance_gradients(const PairDistances<T>& s, std::int64_t rows, std::int64_t head_size) {
  constexpr std::int64_t kLanes = max_lanes<T>();
  const std::int64_t d = padded(head_size), columns = (head_size + kLanes - 1) / kLanes * kLanes;
  std::int64_t at = s.begin;
  if (s.q_finite) {
    for (; at + kAttentionTileRows <= s.end; at += kAttentionTileRows) {
      add_distance_gradient<kAttentionTileRows>(s, at, rows, columns, d);
    }
  }
  for (; at < s.end; ++at) add_distance_gradient<1>(s, at, rows, columns, d);
}

/// Packs the distances [begin, end), from a multiple of kKeyBlock on, and sets their gradients to 0.
template <class T>
HWY_INLINE void start_head_distances(const AttentionBackwardHead<T>& head, const RelativeHeadScratch<T>& s,
                                     std::int64_t begin, std::int64_t end) {
  const std::int64_t ld = padded(head.head_size);
  if (begin == end) return;
  if (begin == 0) std::fill(s.r - kPaddingMultiple * ld, s.r, T{0});
  for (std::int64_t at = begin; at < end; at += kKeyBlock) {
    const std::int64_t rows = std::min(kKeyBlock, end - at);
    const TileDistances<T>& all = head.distances;
    const PackSource<T> from{all.rows + at * all.stride, all.stride, nullptr, all.origin};
    s.r_finite[at / kKeyBlock] = pack_head_rows(from, rows, head.head_size, T{1}, s.r + at * ld, ld);
    std::fill(s.dr + at * ld, s.dr + (at + rows) * ld, T{0});
  }
  if (end == head.keys) std::fill(s.r + end * ld, s.r + (end + kPaddingMultiple) * ld, T{0});
}

/// The position term of one pair of queries [t, t + rows) and a block of keys; scratch: relative_scratch().
template <class T>
HWY_INLINE PairDistances<T> pair_distances(const AttentionBackwardHead<T>& head, const RelativeHeadScratch<T>& s,
                                           T* scratch, std::int64_t t, std::int64_t rows, const KeyBlock& keys,
                                           bool q_finite) {
  const std::int64_t ld = padded(head.head_size);
  const Window window(head.distances.first, t, rows, keys.first, keys.count);
  const std::int64_t begin = std::max<std::int64_t>(window.lowest, 0);
  const std::int64_t end = std::min(window.lowest + window.columns(), head.keys);
  T* const scores = scratch + kDistanceWindowColumns * ld;
  return {.window = window,
          .q = s.q + t * ld,
          .dq = s.dq + t * ld,
          .r = s.r + window.lowest * ld,
          .dr = s.dr + window.lowest * ld,
          .columns = scratch,
          .scores = scores,
          .ds = scores + kPaddingMultiple * kPositionScoreColumns,
          .q_finite = q_finite,
          .r_finite = std::all_of(s.r_finite + begin / kKeyBlock, s.r_finite + (end - 1) / kKeyBlock + 1,
                                  [](T finite) { return finite != 0; }),
          .begin = window.column(rows - 1),
          .end = end - window.lowest};
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_ATTENTION_RELATIVE_INL_H_
