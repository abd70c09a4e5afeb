// Forward attention (see attention.h). A tile of queries takes one block of keys after the other:
//
//   s = (q · scale · log₂ e) kᵀ      m' = max(m, max s)      α = 2^(m − m')      p = 2^(s − m')
//   l = l · α + Σ p                  y = y · α + (p ∘ keep) v
//
// with the dropout factors keep. At the end y is multiplied by 1 / l, and lse = m + log₂ l. Scores are logarithms to
// base 2, which saves a multiplication in every exponential. l is summed lane by lane; the lanes are added once, at the
// end.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "autograd/core/parallel.h"
#include "autograd/kernels/attention/attention.h"
#include "autograd/kernels/attention/bf16.h"
#include "autograd/kernels/attention/heads.h"
#include "autograd/kernels/attention/tile.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/attention/forward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/attention/block_math-inl.h"
#include "autograd/kernels/attention/origin-inl.h"
#include "autograd/kernels/attention/relative-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

/// The scratch of a tile; see forward_tile_scratch(). d = padded(head_size), tile = kForwardTileQueries.
template <class T>
struct ForwardScratch {
  T *q, *y, *lane_sum, *max, *sum;  // [tile, d] twice, [tile, kPaddingMultiple], [tile] twice
  T *kt, *v;                        // [d, kKeyBlock], [kKeyBlock, d]
  T *p, *new_max, *alpha;           // of one group of rows: [kPaddingMultiple, kKeyBlock], [kPaddingMultiple] twice
  T* keep;                          // of one row: [kKeyBlock]
  T* origins;                       // [3, d]
  RelativeTileScratch<T> position;  // only if there is a position term

  ForwardScratch(T* at, std::int64_t d)
      : q(at),
        y(q + kForwardTileQueries * d),
        lane_sum(y + kForwardTileQueries * d),
        max(lane_sum + kForwardTileQueries * kPaddingMultiple),
        sum(max + kForwardTileQueries),
        kt(sum + kForwardTileQueries),
        v(kt + kKeyBlock * d),
        p(v + kKeyBlock * d),
        new_max(p + kPaddingMultiple * kKeyBlock),
        alpha(new_max + kPaddingMultiple),
        keep(alpha + kPaddingMultiple),
        origins(keep + kKeyBlock),
        position(origins + 3 * d, d) {}
};

/// The window of a tile in a block of keys.
template <class T>
HWY_INLINE Window window_of(const AttentionForwardTile<T>& tile, const KeyBlock& keys) {
  return {tile.distances.first, 0, tile.queries, keys.first, keys.count};
}

/// The values of one block of keys: packed or, for a single query without a mask whose vectors are whole, in place, if
/// they are not rounded;
/// `finite` is then not examined, because a single row multiplies no value that it does not see.
template <class T>
struct Values {
  const T* data;
  std::int64_t ld;
  bool finite;
};

/// Online softmax of R rows of the tile, from `row` on, over one block of keys whose scores are in s.p; `first` means
/// that it is the first block of these rows. visible [R], the number of picked keys that each row sees, never decreases
/// from row to row.
template <int R, class T>
HWY_NOINLINE void forward_group(const AttentionForwardTile<T>& tile, const ForwardScratch<T>& s, std::int64_t row,
                                const KeyBlock& keys, const std::int64_t* visible, const Values<T>& values,
                                bool first) {
  constexpr std::int64_t kLanes = max_lanes<T>();
  const std::int64_t d = padded(tile.head_size), most = visible[R - 1], width = (most + kLanes - 1) / kLanes * kLanes;
  const std::int64_t columns = (tile.head_size + kLanes - 1) / kLanes * kLanes;
  T* const max = s.max + row;
  T* const y = s.y + row * d;
  if (first) {
    std::fill(max, max + R, std::numeric_limits<T>::lowest());
    std::fill(s.lane_sum + row * kPaddingMultiple, s.lane_sum + (row + R) * kPaddingMultiple, T{0});
  }

  for (int r = 0; r < R; ++r) s.new_max[r] = row_max(s.p + r * kKeyBlock, visible[r], max[r]);
  exp2_row(max, s.new_max, R, s.alpha);
  for (int r = 0; r < R; ++r) {
    T* const p = s.p + r * kKeyBlock;
    max[r] = s.new_max[r];
    row_weights(p, visible[r], width, s.new_max[r], s.alpha[r], s.lane_sum + (row + r) * kPaddingMultiple);
    if (tile.dropout.stream != nullptr && row + r < tile.queries) {
      const auto number = tile.first_weight + static_cast<std::uint64_t>((row + r) * tile.keys);
      dropout_row(tile.dropout, number, keys, visible[r], s.keep);
      for (std::int64_t j = 0; j < visible[r]; ++j) p[j] *= s.keep[j];
    }
    if (tile.rounds_operands) round_to_bf16(p, visible[r]);
  }
  if (values.finite || visible[0] == most) {
    if (first) {
      product<R, false, Store::set>(columns, most, s.p, kKeyBlock, values.data, values.ld, y, d);
    } else {
      product<R, false, Store::scale_add>(columns, most, s.p, kKeyBlock, values.data, values.ld, y, d, s.alpha);
    }
    return;
  }
  if (first) std::fill(y, y + R * d, T{0});
  for (int r = 0; r < R; ++r) {  // row by row: only some of the rows see a value that is not finite
    product<1, false, Store::scale_add>(columns, visible[r], s.p + r * kKeyBlock, kKeyBlock, values.data, values.ld,
                                        y + r * d, d, s.alpha + r);
  }
}

/// s.p = the scores of R rows of the tile, from `row` on, for one block of keys. Early rows (attention.h), whose origin
/// differs from that of the packed keys, read the keys in place.
template <int R, class T>
HWY_INLINE void forward_scores(const AttentionForwardTile<T>& tile, const ForwardScratch<T>& s,
                               const Origins<T>& origins, std::int64_t row, const KeyBlock& keys,
                               const std::int64_t* visible) {
  constexpr std::int64_t kLanes = max_lanes<T>();
  const std::int64_t d = padded(tile.head_size), width = (visible[R - 1] + kLanes - 1) / kLanes * kLanes;
  if (row + R > origins.first_row_of_seven && origins.first_row_of_seven < tile.queries) {
    score_product<R>(width, tile.head_size, s.q + row * d, d, s.kt, s.p);
  }
  const T* const k = tile.k + keys.first * tile.k_stride;
  for (std::int64_t r = 0; r < R && row + r < origins.first_row_of_seven; ++r) {
    dots_minus_origin<T>(s.q + (row + r) * d, {k, tile.k_stride, keys.pick, origins.of_row(row + r)}, visible[r],
                         tile.head_size, s.p + r * kKeyBlock);
  }
  if (!tile.distances) return;
  const T* const columns = s.position.window + window_of(tile, keys).column(row + R - 1);
  add_position_scores<R>(s.position.q + row * d, tile.head_size, columns, visible, s.position.scores, s.p);
}

/// Applies one block of keys to all rows of the tile. `first` means that no earlier block had picked keys; every row
/// that sees any key sees one in that first block.
template <class T>
HWY_INLINE void forward_block(const AttentionForwardTile<T>& tile, const ForwardScratch<T>& s,
                              const Origins<T>& origins, const KeyBlock& keys, bool first) {
  const std::int64_t d = padded(tile.head_size);
  const T* const k = tile.k + keys.first * tile.k_stride;
  const T* const v = tile.v + keys.first * tile.v_stride;
  if (origins.first_row_of_seven < tile.queries) {
    pack_head_transposed<T>({k, tile.k_stride, keys.pick, origins.of_seven, tile.rounds_operands}, keys.count,
                            tile.head_size, s.kt);
  }
  if (tile.distances) pack_window(tile, window_of(tile, keys), s.position.window);
  Values<T> values{v, tile.v_stride, true};
  if (tile.queries > 1 || keys.pick != nullptr || tile.head_size % max_lanes<T>() != 0 || tile.rounds_operands) {
    const PackSource<T> from{v, tile.v_stride, keys.pick, nullptr, tile.rounds_operands};
    values = {s.v, d, pack_head_rows(from, keys.count, tile.head_size, T{1}, s.v, d)};
  }
  for (std::int64_t row = 0; row < tile.queries; row += kAttentionTileRows) {
    std::int64_t visible[kAttentionTileRows];
    for (int r = 0; r < kAttentionTileRows; ++r) {  // rows beyond the last one see the same keys as it does
      const std::int64_t t = std::min(row + r, tile.queries - 1);
      visible[r] = keys.visible(tile.last_key + t * tile.last_key_step);
    }
    if (visible[kAttentionTileRows - 1] == 0) continue;
    if (row + 1 == tile.queries) {
      forward_scores<1>(tile, s, origins, row, keys, visible);
      forward_group<1>(tile, s, row, keys, visible, values, first);
    } else {
      forward_scores<kAttentionTileRows>(tile, s, origins, row, keys, visible);
      forward_group<kAttentionTileRows>(tile, s, row, keys, visible, values, first);
    }
  }
}

/// Delivers y · (1 / l) and lse, and zeros for the rows before seen_from, which see no key. Adding 0 turns −0, which an
/// underflowing sum can leave, into 0.
template <class T>
HWY_INLINE void forward_finish(const AttentionForwardTile<T>& tile, const ForwardScratch<T>& s,
                               std::int64_t seen_from) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kLanes = max_lanes<T>();
  for (std::int64_t t = 0; t < tile.queries; ++t) {
    WeightSums<T> sums;
    sums.add(s.lane_sum + t * kPaddingMultiple);
    s.sum[t] = sums.total();
    const auto factor = hn::Div(hn::Set(d, T{1}), hn::Set(d, s.sum[t]));
    const T* const row = s.y + t * padded(tile.head_size);
    T* const y = tile.y + t * tile.y_stride;
    const auto delivered = [&](std::int64_t c)
                               HWY_ATTR { return hn::MulAdd(hn::LoadU(d, row + c), factor, hn::Zero(d)); };
    std::int64_t c = 0;
    for (; c + kLanes <= tile.head_size; c += kLanes) hn::StoreU(delivered(c), d, y + c);
    if (c < tile.head_size) StorePartial(delivered(c), d, y + c, tile.head_size - c);
    if (t < seen_from) std::fill(y, y + tile.head_size, T{0});
  }
  if (tile.lse == nullptr) return;
  const auto log2_e = hn::Set(d, static_cast<T>(std::numbers::log2e));
  for (std::int64_t t = 0; t < tile.queries; t += kLanes) {
    const auto lse = hn::MulAdd(Log(d, hn::LoadU(d, s.sum + t)), log2_e, hn::LoadU(d, s.max + t));
    StorePartial(lse, d, tile.lse + t, tile.queries - t);
  }
  for (std::int64_t t = 0; t < std::min(seen_from, tile.queries); ++t) tile.lse[t] = 0;
}

/// Computes y and lse of one tile.
template <class T>
void forward_tile_on_target(const AttentionForwardTile<T>& tile, T* scratch) {
  const std::int64_t d = padded(tile.head_size), rows = padded(tile.queries);
  const ForwardScratch<T> s(scratch, d);
  const T factor = static_cast<T>(tile.scale * std::numbers::log2e);
  const auto pack_queries = [&](const T* origin, T* to) {
    const PackSource<T> from{tile.q, tile.q_stride, nullptr, origin, tile.rounds_operands};
    pack_head_rows(from, tile.queries, tile.head_size, factor, to, d);
    std::fill(to + tile.queries * d, to + rows * d, T{0});
  };
  pack_queries(tile.distances.minus_u, s.q);
  if (tile.distances) pack_queries(tile.distances.minus_v, s.position.q);

  Origins<T> origins(tile, s.origins);
  origins.compute(tile, tile.k, tile.k_stride);
  const std::int64_t last = tile.last_key + (tile.queries - 1) * tile.last_key_step;
  bool first = true;
  for (std::int64_t at = 0; at <= std::min(last, tile.keys - 1); at += kKeyBlock) {
    const KeyBlock keys(tile.key_mask, at, std::min(last + 1, tile.keys));
    if (keys.count == 0) continue;
    forward_block(tile, s, origins, keys, first);
    first = false;
  }
  forward_finish(tile, s, tile.first_row_that_sees(1));
}

MAKI_KERNEL(forward_tile_on_target);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {
namespace {
MAKI_EXPORT(forward_tile_on_target);

template <class T>
std::int64_t tile_queries(const AttentionShape& shape) {
  return runs_in_bf16<T>(shape) ? kBf16TileQueries : kForwardTileQueries;
}

template <class T>
std::int64_t forward_tiles(const AttentionShape& shape) {
  return shape.batch * shape.heads * ceil_div(shape.queries, tile_queries<T>(shape));
}

template <class T>
std::int64_t worker_scratch(const AttentionShape& shape) {
  if (runs_in_bf16<T>(shape)) return Bf16ForwardScratch(shape.head_size, nullptr).size;
  return forward_tile_scratch(shape.head_size) + (shape.relative ? relative_tile_scratch(shape.head_size) : 0);
}

template <class T>
auto tile_kernel(const AttentionShape& shape) {
  if constexpr (std::is_same_v<T, float>) {
    if (runs_in_bf16<T>(shape)) return bf16_forward_kernel();
  }
  return MAKI_DISPATCH(forward_tile_on_target, T);
}
}  // namespace

template <class T>
std::int64_t attention_forward_scratch(const AttentionShape& shape) {
  return workers(forward_tiles<T>(shape)) * worker_scratch<T>(shape);
}

template <class T>
void attention_forward(const AttentionShape& shape, HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v,
                       HeadRows<T> y, T* lse, T* scratch, const RelativeRows<T>& relative) {
  const auto kernel = tile_kernel<T>(shape);
  const AttentionOperands<T> operands{q, k, v, relative};
  const std::int64_t own_scratch = worker_scratch<T>(shape), t_size = shape.queries;
  const std::int64_t tile_rows = tile_queries<T>(shape), tiles = ceil_div(t_size, tile_rows);
  const std::int64_t work = std::min(t_size, tile_rows) * (shape.keys + 1) * (shape.head_size + 8) / 8;
  parallel_for(forward_tiles<T>(shape), work, [&](std::int64_t i, std::int64_t worker) {
    // In a causal head, later tiles cost more. In the order first, last, second, … contiguous parts cost the same.
    const std::int64_t order = i % tiles, b = i / tiles / shape.heads, h = i / tiles % shape.heads;
    const std::int64_t t = (order % 2 == 0 ? order / 2 : tiles - 1 - order / 2) * tile_rows;
    AttentionForwardTile<T> tile{};
    static_cast<AttentionTile<T>&>(tile) = tile_of(shape, operands, b, h, t, std::min(tile_rows, t_size - t));
    tile.y = y.data + b * y.batch_stride + t * y.row_stride + h * shape.head_size;
    tile.y_stride = y.row_stride;
    tile.lse = lse == nullptr ? nullptr : lse + (b * shape.heads + h) * t_size + t;
    kernel(tile, scratch + worker * own_scratch);
  });
}

template std::int64_t attention_forward_scratch<float>(const AttentionShape&);
template std::int64_t attention_forward_scratch<double>(const AttentionShape&);
template void attention_forward(const AttentionShape&, HeadRows<const float>, HeadRows<const float>,
                                HeadRows<const float>, HeadRows<float>, float*, float*, const RelativeRows<float>&);
template void attention_forward(const AttentionShape&, HeadRows<const double>, HeadRows<const double>,
                                HeadRows<const double>, HeadRows<double>, double*, double*,
                                const RelativeRows<double>&);

}  // namespace maki::kernels
#endif  // HWY_ONCE
