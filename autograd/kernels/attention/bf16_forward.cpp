// Forward attention of operands rounded to bfloat16. The recurrence over blocks of keys is that of forward.cpp, for a
// panel of 32 queries at a time and transposed (bf16_panels-inl.h):
//
//   sᵀ = k qᵀ · scale · log₂ e     p = 2^(s − m')     yᵀ = yᵀ · α + vᵀ (p ∘ keep)ᵀ
//
// q, k minus its origin, v and p ∘ keep are rounded; maxima, exponentials and the sums l of p are not.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "autograd/kernels/attention/bf16.h"
#include "autograd/kernels/gemm/bf16.h"
#include "autograd/kernels/simd/dispatch.h"
#include "autograd/kernels/simd/flush_subnormals.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/attention/bf16_forward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/attention/bf16_panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

#if MAKI_HAVE_BF16

/// The running maxima and sums of a panel, and by how much its earlier sums shrink, [32] each.
struct RunningSoftmax {
  float *max, *sum, *alpha;
};

/// The running maximum of a query follows its scores, which are logarithms to base 2, only when one exceeds it by this
/// much, because every change scales all sums of the query. Until then its weights are at most 2^kMaxSlack instead of
/// 1, which costs no digit.
inline constexpr float kMaxSlack = 8;

/// The maximum of `old` and of the scores of the first keys that each lane from c on sees. It may ignore a NaN, whose
/// weight is NaN whatever the maximum is.
HWY_INLINE LaneVec max_of_column(const PanelScores& s, const PanelVisibility& seen, std::int64_t c, LaneVec old) {
  LaneVec most[2] = {old, old};  // two, to hide the latency
  const std::int64_t all = seen.least / 2 * 2;
  for (std::int64_t j = 0; j < all; j += 2) {
    MAKI_UNROLL for (int i = 0; i < 2; ++i) most[i] = hn::Max(most[i], s.at(j + i, c));
  }
  for (std::int64_t j = all; j < seen.most; ++j) {
    const LaneVec score = s.at(j, c);
    most[0] = hn::Max(most[0], hn::IfThenElse(lanes_that_see(seen, j, c), score, most[0]));
  }
  return hn::Max(most[0], most[1]);
}

/// From the scores of a panel, of seen.most keys: packs the weights p ∘ keep as columns, with zeros for what is not
/// seen, and updates the softmax. keep [keys, 32], its rows kKeyBlock apart, may be null.
template <class Kernel>
HWY_NOINLINE void softmax_panel(const PanelScores& s, const PanelVisibility& seen, const float* keep,
                                const RunningSoftmax& state, Panels<typename Kernel::Element> p) {
  const LaneFloats d;
  const std::int64_t steps = bf16_padded_size(seen.most);
  for (std::int64_t c = 0; c < kBf16Panel; c += kLaneCount) {
    const LaneVec old = hn::Load(d, state.max + c), most = max_of_column(s, seen, c, old);
    const LaneVec max = hn::IfThenElse(hn::Lt(hn::Sub(most, old), hn::Set(d, kMaxSlack)), old, most);
    const LaneVec alpha = exp2_of_score(hn::Sub(old, max));
    LaneVec sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    for (std::int64_t j = 0; j < steps; j += 4) {
      LaneVec x[4];
      MAKI_UNROLL for (int i = 0; i < 4; ++i) { x[i] = exp2_of_score(hn::Sub(s.at(j + i, c), max)); }
      if (j + 4 > seen.least) {
        MAKI_UNROLL for (int i = 0; i < 4; ++i) x[i] = hn::IfThenElseZero(lanes_that_see(seen, j + i, c), x[i]);
      }
      MAKI_UNROLL for (int i = 0; i < 4; ++i) sums[i] = hn::Add(sums[i], x[i]);
      if (keep != nullptr) {
        MAKI_UNROLL for (int i = 0; i < 4; ++i) {
          const LaneVec kept = hn::Mul(x[i], hn::LoadU(d, keep + (j + i) * kKeyBlock + c));
          x[i] = hn::IfThenElseZero(lanes_that_see(seen, j + i, c), kept);
        }
      }
      Kernel::store_steps(x, j, c, p.data, p.stride);
    }
    const LaneVec sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
    hn::Store(hn::MulAdd(hn::Load(d, state.sum + c), alpha, sum), d, state.sum + c);
    hn::Store(max, d, state.max + c);
    hn::Store(alpha, d, state.alpha + c);
  }
}

/// yᵀ [head_size, 32] ← yᵀ · α, unless α is 1 everywhere.
HWY_INLINE void scale_outputs(const float* alpha, std::int64_t head_size, float* y) {
  const LaneFloats d;
  for (std::int64_t c = 0; c < kBf16Panel; c += kLaneCount) {
    const LaneVec factor = hn::Load(d, alpha + c);
    if (hn::AllTrue(d, hn::Eq(factor, hn::Set(d, 1.0F)))) continue;
    for (std::int64_t r = 0; r < head_size; ++r) {
      hn::Store(hn::Mul(hn::Load(d, y + r * kBf16Panel + c), factor), d, y + r * kBf16Panel + c);
    }
  }
}

/// Packs what the rows of the tile that are not early rows multiply, and sets their outputs and sums to 0.
template <class Kernel>
HWY_INLINE void start_tile(const AttentionForwardTile<float>& tile, const Bf16ForwardScratch& s) {
  const auto q = panels_in<Kernel>(s.q, tile.head_size);
  Kernel::pack_b(tile.head_size, tile.queries, tile.q, tile.q_stride, true, q.data, q.stride);
  const std::int64_t end = bf16_padded_size(tile.queries);
  std::fill_n(s.y, end * tile.head_size, 0.0F);
  std::fill_n(s.max, end, std::numeric_limits<float>::lowest());
  std::fill_n(s.sum, end, 0.0F);
}

/// Prefetches the keys and values of the block that begins at `at`, if there is one.
HWY_INLINE void prefetch_block(const AttentionForwardTile<float>& tile, std::int64_t at) {
  const std::int64_t end = std::min(at + kKeyBlock, tile.keys);
  prefetch_rows(tile.k, tile.k_stride, at, end, tile.head_size);
  prefetch_rows(tile.v, tile.v_stride, at, end, tile.head_size);
}

/// Packs the keys of a block as rows and its values transposed.
template <class Kernel>
HWY_INLINE void pack_block(const AttentionForwardTile<float>& tile, const Bf16ForwardScratch& s,
                           const Origins<float>& origins, const KeyBlock& keys) {
  const std::int64_t d = padded(tile.head_size), columns = tile.head_size;
  if (origins.first_row_of_seven < tile.queries) {
    const float* const k = tile.k + keys.first * tile.k_stride;
    pack_head_rows<float>({k, tile.k_stride, keys.pick, origins.of_seven}, keys.count, columns, 1, s.rows, d);
    pack_as_rows<Kernel>(s.rows, d, keys.count, columns, panels_in<Kernel>(s.k, columns));
  }
  const float* const v = tile.v + keys.first * tile.v_stride;
  const auto to = panels_in<Kernel>(s.v, kKeyBlock);
  if (keys.pick == nullptr) return pack_transposed<Kernel>(v, tile.v_stride, keys.count, columns, to);
  pack_head_rows<float>({v, tile.v_stride, keys.pick}, keys.count, columns, 1, s.rows, d);
  pack_transposed<Kernel>(s.rows, d, keys.count, columns, to);
}

/// Applies one block of keys to the panel of queries that begins at `row` of the tile.
template <class Kernel>
HWY_INLINE void forward_panel(const AttentionForwardTile<float>& tile, const Bf16ForwardScratch& s,
                              const Origins<float>& origins, const KeyBlock& keys, std::int64_t row) {
  const PanelVisibility seen(tile, keys, row);
  if (seen.most == 0) return;
  if (origins.first_row_of_seven < std::min(tile.queries, row + kBf16Panel)) {
    const auto q = panels_in<Kernel>(s.q, tile.head_size);
    panel_product<Kernel>(padded(seen.most), kBf16Panel, tile.head_size, panels_in<Kernel>(s.k, tile.head_size),
                          q.from(row), s.s, kBf16Panel, false);
  }
  early_columns(origins, {tile.k + keys.first * tile.k_stride, tile.k_stride, keys.pick}, {tile.q, tile.q_stride}, row,
                seen, tile.head_size, s.row, s.s);
  const float* keep = nullptr;
  if (tile.dropout.stream != nullptr) keep = dropout_by_key(tile, keys, row, seen, s.keep, s.turned);
  const auto p = panels_in<Kernel>(s.p, kKeyBlock);
  softmax_panel<Kernel>({s.s, score_factor(tile)}, seen, keep, {s.max + row, s.sum + row, s.alpha}, p);
  float* const y = s.y + row * tile.head_size;
  scale_outputs(s.alpha, tile.head_size, y);
  panel_product<Kernel>(tile.head_size, kBf16Panel, seen.most, panels_in<Kernel>(s.v, kKeyBlock), p, y, kBf16Panel,
                        true);
}

/// Delivers y / l and lse of a panel; rows before seen_from see no key and get zeros.
HWY_INLINE void finish_panel(const AttentionForwardTile<float>& tile, const Bf16ForwardScratch& s, std::int64_t row,
                             std::int64_t seen_from) {
  const LaneFloats d;
  const std::int64_t rows = std::min(kBf16Panel, tile.queries - row);
  const float* const y = s.y + row * tile.head_size;
  for (std::int64_t c = 0; c < tile.head_size; c += kKeyBlock) {
    const std::int64_t columns = std::min(kKeyBlock, tile.head_size - c);
    pack_head_transposed<float, kKeyBlock>({y + c * kBf16Panel, kBf16Panel}, columns, rows, s.turned);
    for (std::int64_t r = 0; r < rows; ++r) {
      const LaneVec factor = hn::Set(d, row + r < seen_from ? 0.0F : 1 / s.sum[row + r]);
      float* const to = tile.y + (row + r) * tile.y_stride + c;
      for (std::int64_t i = 0; i < columns; i += kLaneCount) {
        const LaneVec x = hn::MulAdd(hn::LoadU(d, s.turned + r * kKeyBlock + i), factor, hn::Zero(d));
        StorePartial(row + r < seen_from ? hn::Zero(d) : x, d, to + i, columns - i);
      }
    }
  }
  if (tile.lse == nullptr) return;
  const LaneVec log2_e = hn::Set(d, static_cast<float>(std::numbers::log2e));
  for (std::int64_t t = row; t < row + rows; t += kLaneCount) {
    const LaneVec lse = hn::MulAdd(Log(d, hn::Load(d, s.sum + t)), log2_e, hn::Load(d, s.max + t));
    StorePartial(lse, d, tile.lse + t, row + rows - t);
  }
  for (std::int64_t t = row; t < std::min(seen_from, row + rows); ++t) tile.lse[t] = 0;
}

/// Computes y and lse of one tile.
template <class Kernel>
void forward_tile_in_bf16(const AttentionForwardTile<float>& tile, float* scratch) {
  [[maybe_unused]] const typename Kernel::ThreadScope scope;
  const FlushSubnormals flush;
  const Bf16ForwardScratch s(tile.head_size, scratch);
  prefetch_block(tile, 0);
  start_tile<Kernel>(tile, s);
  Origins<float> origins(tile, s.origins);
  origins.compute(tile, tile.k, tile.k_stride);
  const std::int64_t last = tile.last_key + (tile.queries - 1) * tile.last_key_step;
  for (std::int64_t at = 0; at <= std::min(last, tile.keys - 1); at += kKeyBlock) {
    const KeyBlock keys(tile.key_mask, at, std::min(last + 1, tile.keys));
    if (keys.count == 0) continue;
    pack_block<Kernel>(tile, s, origins, keys);
    prefetch_block(tile, at + kKeyBlock);
    for (std::int64_t row = 0; row < tile.queries; row += kBf16Panel) {
      forward_panel<Kernel>(tile, s, origins, keys, row);
    }
  }
  const std::int64_t seen_from = tile.first_row_that_sees(1);
  for (std::int64_t row = 0; row < tile.queries; row += kBf16Panel) finish_panel(tile, s, row, seen_from);
}

#endif  // MAKI_HAVE_BF16

Bf16ForwardKernel forward_kernel_on([[maybe_unused]] Bf16Unit unit) {
#if MAKI_HAVE_BF16
  if (unit == Bf16Unit::amx) return &forward_tile_in_bf16<Bf16Amx>;
  if (unit == Bf16Unit::pairs) return &forward_tile_in_bf16<Bf16Pairs>;
#endif
  return nullptr;
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

MAKI_TARGETS(forward_kernel_on);
Bf16ForwardKernel bf16_forward_kernel() {
  require_target();
  return MAKI_ON_TARGET(forward_kernel_on)(bf16_unit());
}

}  // namespace maki::kernels
#endif  // HWY_ONCE
