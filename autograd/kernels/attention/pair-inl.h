// The backward pass of attention for one tile of queries and one packed block of keys. The formulas are in
// attention/backward.cpp. Compiled once per SIMD target.
#if defined(MAKI_KERNELS_ATTENTION_PAIR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_ATTENTION_PAIR_INL_H_
#undef MAKI_KERNELS_ATTENTION_PAIR_INL_H_
#else
#define MAKI_KERNELS_ATTENTION_PAIR_INL_H_
#endif

#include <hwy/highway.h>

#include "autograd/kernels/attention/block_math-inl.h"
#include "autograd/kernels/attention/origin-inl.h"
#include "autograd/kernels/attention/relative-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

/// A tile of queries, a block of keys, and the scratch to compute both with.
template <class T>
struct Pair {
  std::int64_t first_row, rows;     // of the tile, within the head
  std::int64_t early;               // rows [0, early) of the tile are early rows (see attention.h); may exceed `rows`
  const T *q, *dy, *row_sum, *lse;  // of the tile
  T* dq;                            // of the tile
  const T *k, *kt, *vt;  // of the block, packed; not set if all rows of the head are early, which are computed apart
  T *dk, *dv;            // of the block
  T *p, *ds, *keep;      // scratch: [kBackwardTileQueries, kKeyBlock] twice, [kKeyBlock]
  bool q_finite, dy_finite, k_finite;
  PackSource<T> plain_k, plain_v;  // keys and values of the block, unpacked and without an origin
  const Origins<T>* k_origins;
  const Origins<T>* v_origins;
  PairDistances<T> distances;  // none if there is no position term

  PackSource<T> early_k(std::int64_t row) const { return with_origin(plain_k, k_origins->of_row(first_row + row)); }
  PackSource<T> early_v(std::int64_t row) const { return with_origin(plain_v, v_origins->of_row(first_row + row)); }

 private:
  static PackSource<T> with_origin(PackSource<T> from, const T* origin) {
    from.origin = origin;
    return from;
  }
};

/// For one row, in place: s becomes p ∘ keep and dp becomes ds = p ∘ (dp ∘ keep − r), with zeros from `visible` to
/// `width`. Where one key has all the weight (p = 1), ds would be 0 except for the rounding error of dp − r, which
/// would be multiplied by a large key in dq and by a large query in dk. It is therefore multiplied by 0, so that NaN
/// stays NaN.
template <class T>
HWY_INLINE void row_gradient(T* s, T* ds, const T* keep, std::int64_t visible, std::int64_t width, T lse, T row_sum) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kLanes = max_lanes<T>();
  const auto shift = hn::Set(d, lse), sum = hn::Set(d, row_sum);
  const auto gradient = [&](std::int64_t j, const auto& seen) HWY_ATTR {
    const auto p = Exp2Negative(d, hn::Sub(hn::LoadU(d, s + j), shift));
    auto dp = hn::LoadU(d, ds + j), kept = p;
    if (keep != nullptr) {
      dp = hn::Mul(dp, hn::LoadU(d, keep + j));
      kept = hn::Mul(p, hn::LoadU(d, keep + j));
    }
    hn::StoreU(seen(kept), d, s + j);
    const auto weight = hn::IfThenZeroElse(hn::Eq(p, hn::Set(d, T{1})), p);
    hn::StoreU(seen(hn::Mul(weight, hn::Sub(dp, sum))), d, ds + j);
  };
  using V = hn::Vec<decltype(d)>;
  std::int64_t j = 0;
  for (; j + kLanes <= visible; j += kLanes) gradient(j, [](V x) HWY_ATTR { return x; });
  if (j < visible) {
    const auto lanes = hn::FirstN(d, static_cast<std::size_t>(visible - j));
    gradient(j, [&](V x) HWY_ATTR { return hn::IfThenElseZero(lanes, x); });
    j += kLanes;
  }
  for (; j < width; j += kLanes) {
    hn::StoreU(hn::Zero(d), d, s + j);
    hn::StoreU(hn::Zero(d), d, ds + j);
  }
}

/// Computes p and ds of kAttentionTileRows rows, from `row` of the tile on, and adds ds k to dq.
template <class T>
HWY_NOINLINE void pair_rows(const AttentionBackwardHead<T>& head, const Pair<T>& s, std::int64_t row,
                            const KeyBlock& keys, const std::int64_t* visible) {
  constexpr std::int64_t kLanes = max_lanes<T>(), kWidthUnit = std::max<std::int64_t>(kLanes, kAttentionTileRows);
  // p and ds are written for whole register tiles of keys, because pair_keys() reads them in such tiles.
  const std::int64_t d = padded(head.head_size), most = visible[kAttentionTileRows - 1];
  const std::int64_t width = (most + kWidthUnit - 1) / kWidthUnit * kWidthUnit;
  const std::int64_t columns = (head.head_size + kLanes - 1) / kLanes * kLanes;
  T *const p = s.p + row * kKeyBlock, *const ds = s.ds + row * kKeyBlock;
  if (row + kAttentionTileRows > s.early && s.early < s.rows) {
    score_product<kAttentionTileRows>(width, head.head_size, s.q + row * d, d, s.kt, p);
    score_product<kAttentionTileRows>(width, head.head_size, s.dy + row * d, d, s.vt, ds);
  }
  const std::int64_t rows = std::min<std::int64_t>(kAttentionTileRows, s.rows - row);
  const std::int64_t early = std::clamp<std::int64_t>(s.early - row, 0, rows);
  for (std::int64_t r = 0; r < early; ++r) {
    dots_minus_origin(s.q + (row + r) * d, s.early_k(row + r), visible[r], head.head_size, p + r * kKeyBlock);
    dots_minus_origin(s.dy + (row + r) * d, s.early_v(row + r), visible[r], head.head_size, ds + r * kKeyBlock);
  }
  if (s.distances.q != nullptr) {
    const PairDistances<T>& x = s.distances;
    const T* const from = x.columns + x.window.column(row + kAttentionTileRows - 1);
    add_position_scores<kAttentionTileRows>(x.q + row * d, head.head_size, from, visible, x.scores, p);
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    const bool drops = head.dropout.stream != nullptr;
    const auto number = head.first_weight + static_cast<std::uint64_t>((s.first_row + row + r) * head.keys);
    if (drops) dropout_row(head.dropout, number, keys, visible[r], s.keep);
    row_gradient(p + r * kKeyBlock, ds + r * kKeyBlock, drops ? s.keep : nullptr, visible[r], width, s.lse[row + r],
                 s.row_sum[row + r]);
    if (head.rounds_operands) round_to_bf16(p + r * kKeyBlock, width);
    if (head.rounds_operands) round_to_bf16(ds + r * kKeyBlock, width);
  }
  if (s.distances.q != nullptr) distance_rows(s.distances, row, rows, head.head_size, ds, visible);
  if (!head.dq) return;
  T* const dq = s.dq + row * d;
  if (early == 0 && (s.k_finite || visible[0] == most)) {
    product<kAttentionTileRows, false, Store::add>(columns, most, ds, kKeyBlock, s.k, d, dq, d);
    return;
  }
  for (std::int64_t r = 0; r < early; ++r) {
    add_minus_origin(ds + r * kKeyBlock, s.early_k(row + r), visible[r], head.head_size, dq + r * d);
  }
  // Row by row: some of these rows are early, or only some of them see a key that is not finite.
  for (std::int64_t r = early; r < rows; ++r) {
    product<1, false, Store::add>(columns, visible[r], ds + r * kKeyBlock, kKeyBlock, s.k, d, dq + r * d, d);
  }
}

/// to [keys, d] += weightsᵀ · from, summed over the rows of the tile. from_row [keys] is the first row that sees each
/// key; the rows before it are skipped.
template <class T>
HWY_NOINLINE void pair_keys(const T* weights, const T* from, std::int64_t rows, std::int64_t keys, std::int64_t columns,
                            std::int64_t d, const std::int64_t* from_row, bool finite, T* to) {
  for (std::int64_t j = 0; j < keys; j += kAttentionTileRows) {
    const std::int64_t last = std::min(j + kAttentionTileRows, keys) - 1, start = from_row[j];
    if (finite || from_row[last] == start) {
      product<kAttentionTileRows, true, Store::add>(columns, rows - start, weights + start * kKeyBlock + j, kKeyBlock,
                                                    from + start * d, d, to + j * d, d);
      continue;
    }
    for (std::int64_t i = j; i <= last; ++i) {  // key by key: a row that is not finite may see only some of them
      product<1, true, Store::add>(columns, rows - from_row[i], weights + from_row[i] * kKeyBlock + i, kKeyBlock,
                                   from + from_row[i] * d, d, to + i * d, d);
    }
  }
}

/// Adds what one pair contributes to dq of its tile and to dk and dv of its block.
template <class T>
HWY_INLINE void run_pair(const AttentionBackwardHead<T>& head, const Pair<T>& s, const KeyBlock& keys) {
  constexpr std::int64_t kLanes = max_lanes<T>();
  const std::int64_t columns = (head.head_size + kLanes - 1) / kLanes * kLanes;
  std::int64_t from_row[kKeyBlock], seen = 0;  // from_row[j]: the first row of the tile that sees key j
  if (s.distances.q != nullptr) start_distances(head, s.distances);
  for (std::int64_t row = 0; row < s.rows; row += kAttentionTileRows) {
    std::int64_t visible[kAttentionTileRows];
    for (std::int64_t r = 0; r < kAttentionTileRows; ++r) {  // rows beyond the last one see the same keys as it does
      const std::int64_t t = std::min(row + r, s.rows - 1);
      visible[r] = keys.visible(head.last_key + (s.first_row + t) * head.last_key_step);
      while (seen < visible[r]) from_row[seen++] = t;
    }
    if (visible[kAttentionTileRows - 1] > 0) pair_rows(head, s, row, keys, visible);
  }
  if (s.distances.q != nullptr) distance_gradients(s.distances, s.rows, head.head_size);
  if (!head.dk) return;
  pair_keys(s.p, s.dy, s.rows, seen, columns, padded(head.head_size), from_row, s.dy_finite, s.dv);
  pair_keys(s.ds, s.q, s.rows, seen, columns, padded(head.head_size), from_row, s.q_finite, s.dk);
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_ATTENTION_PAIR_INL_H_
