// What forward and backward attention of operands rounded to bfloat16 have in common: products of packed panels, which
// keys the queries of a panel see, and scores of early rows. Compiled once per SIMD target.
//
// Scores and weights are computed transposed, sᵀ [keys, queries]: queries are the lanes of vectors, so that maxima and
// sums run down the rows, and a vector of weights is at once a part of a packed operand of the next product. Empty
// unless the target is x86-64 with AVX-512.
#if defined(MAKI_KERNELS_ATTENTION_BF16_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_ATTENTION_BF16_PANELS_INL_H_
#undef MAKI_KERNELS_ATTENTION_BF16_PANELS_INL_H_
#else
#define MAKI_KERNELS_ATTENTION_BF16_PANELS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include <numbers>

#include "autograd/kernels/attention/bf16.h"
#include "autograd/kernels/attention/block_math-inl.h"
#include "autograd/kernels/attention/origin-inl.h"
#include "autograd/kernels/gemm/bf16_amx-inl.h"
#include "autograd/kernels/gemm/bf16_pairs-inl.h"

#if MAKI_HAVE_BF16
HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

static_assert(kBf16Panel == kBf16PanelWidth && kBf16Panel == kBf16Depth);
static_assert(kKeyBlock % kBf16Panel == 0 && kBackwardTileQueries % kBf16Panel == 0 &&
              kBf16TileQueries % kBf16Panel == 0);

using LaneFloats = hn::ScalableTag<float>;
using LaneVec = hn::Vec<LaneFloats>;
inline constexpr std::int64_t kLaneCount = max_lanes<float>();
inline constexpr int kVecsPerPanel = static_cast<int>(kBf16Panel / kLaneCount);

/// 2^x in 7 instructions of AVX-512, where Exp2Negative() (block_math-inl.h) takes 13: VREDUCEPS leaves f = x −
/// floor(x), and VSCALEFPS multiplies by 2^floor(x). 2^f on [0, 1] is a minimax polynomial with constant term 1 (Remez
/// in double precision; relative error 8e-8, or 1.7e-7 with the rounding of float32). Exactly 1 at 0; 0 for x < −126,
/// because subnormal results are flushed (FlushSubnormals), and at −Inf; NaN stays NaN. A score that a query does not
/// see may be any number; its result, perhaps Inf, is masked by the caller.
HWY_INLINE LaneVec exp2_of_score(LaneVec x) {
  const LaneFloats d;
  LaneVec f, power;
  asm("vreduceps $9, %1, %0" : "=v"(f.raw) : "v"(x.raw));  // 9: towards −Inf, without an inexact exception
  const LaneVec p =
      Polynomial(d, f, 1, 0.693151311805, 0.240164450155, 0.0557999131037, 0.00901703032247, 0.00186713006987);
  asm("vscalefps %2, %1, %0" : "=v"(power.raw) : "v"(p.raw), "v"(x.raw));
  return power;
}

/// A packed operand: panels of 32 rows or columns, `stride` elements apart.
template <class Element>
struct Panels {
  Element* data;
  std::int64_t stride;

  /// The panels from row or column i on, and from step p on. Requires: i and p are multiples of 32.
  Panels from(std::int64_t i, std::int64_t p = 0) const {
    return {data + i / kBf16Panel * stride + p / kBf16Panel * kBf16GroupElements, stride};
  }
};

/// Panels in scratch memory, with room for `steps` steps.
template <class Kernel>
HWY_INLINE Panels<typename Kernel::Element> panels_in(float* at, std::int64_t steps) {
  return {reinterpret_cast<typename Kernel::Element*>(at), bf16_padded_size(steps) * kBf16Panel};
}

/// c [rows, columns] (+)= a b over `steps` steps, which are rounded up to whole groups; the rows of c are ldc apart.
template <class Kernel>
HWY_NOINLINE void panel_product(std::int64_t rows, std::int64_t columns, std::int64_t steps,
                                Panels<typename Kernel::Element> a, Panels<typename Kernel::Element> b, float* c,
                                std::int64_t ldc, bool accumulate) {
  for (std::int64_t i = 0; i < rows; i += kBf16Panel) {
    bf16_panel_product<Kernel>(std::min(kBf16Panel, rows - i),
                               {.groups = bf16_padded_size(steps) / kBf16Depth,
                                .a = a.from(i).data,
                                .b = b.data,
                                .c = c + i * ldc,
                                .ldc = ldc,
                                .accumulate = accumulate,
                                .start_row = nullptr,
                                .columns = columns},
                               b.stride);
  }
}

/// Packs `rows` rows of [rows, cols], `ld` apart, as rows of panels, of cols steps.
template <class Kernel>
HWY_INLINE void pack_as_rows(const float* x, std::int64_t ld, std::int64_t rows, std::int64_t cols,
                             Panels<typename Kernel::Element> to) {
  for (std::int64_t i = 0; i < rows; i += kBf16Panel) {
    Kernel::pack_a(std::min(kBf16Panel, rows - i), cols, x + i * ld, ld, false, to.from(i).data);
  }
}

/// Packs the transpose of x [rows, cols] into panels: its columns become the rows of panels, of `rows` steps.
template <class Kernel>
HWY_INLINE void pack_transposed(const float* x, std::int64_t ld, std::int64_t rows, std::int64_t cols,
                                Panels<typename Kernel::Element> to) {
  for (std::int64_t i = 0; i < cols; i += kBf16Panel) {
    Kernel::pack_a(std::min(kBf16Panel, cols - i), rows, x + i, ld, true, to.from(i).data);
  }
}

/// Prefetches rows [begin, end) of a head, which are too far apart for the CPU to foresee them: forward of 16 × 6 heads
/// of 256 × 64 takes 7 % less time.
HWY_INLINE void prefetch_rows(const float* x, std::int64_t stride, std::int64_t begin, std::int64_t end,
                              std::int64_t head_size) {
  constexpr std::int64_t kLineFloats = 16;  // a cache line of 64 bytes
  for (std::int64_t r = begin; r < end; ++r) {
    for (std::int64_t c = 0; c < head_size; c += kLineFloats) hwy::Prefetch(x + r * stride + c);
  }
}

/// How many of the picked keys of a block each query of a panel sees; 0 beyond the last query.
struct PanelVisibility {
  HWY_ALIGN float count[kBf16Panel];  // floats, to be compared with the number of a key in all lanes
  std::int64_t least, most;

  /// Of the panel whose first query is `row` of the tile.
  PanelVisibility(const AttentionTile<float>& tile, const KeyBlock& keys, std::int64_t row)
      : least(kKeyBlock), most(0) {
    const std::int64_t last_key = tile.last_key + row * tile.last_key_step;
    if (keys.visible(last_key) == keys.count && row + kBf16Panel <= tile.queries) {  // later queries see no less
      least = most = keys.count;
      std::fill_n(count, kBf16Panel, static_cast<float>(keys.count));
      return;
    }
    for (std::int64_t i = 0; i < kBf16Panel; ++i) {
      const std::int64_t t = row + i;
      const std::int64_t seen = t < tile.queries ? keys.visible(tile.last_key + t * tile.last_key_step) : 0;
      count[i] = static_cast<float>(seen);
      least = std::min(least, seen);
      most = std::max(most, seen);
    }
  }
};

/// Which of the lanes from c on see key j.
HWY_INLINE auto lanes_that_see(const PanelVisibility& seen, std::int64_t j, std::int64_t c) {
  const LaneFloats d;
  return hn::Lt(hn::Set(d, static_cast<float>(j)), hn::Load(d, seen.count + c));
}

/// What the products of queries and keys are multiplied by: scores are logarithms to base 2 (forward.cpp).
HWY_INLINE float score_factor(const AttentionTile<float>& tile) {
  return static_cast<float>(tile.scale * std::numbers::log2e);
}

/// The scores of a panel: its products [keys, 32] times a factor.
struct PanelScores {
  const float* products;
  float factor;

  /// Of key j and the queries of the lanes from c on.
  HWY_INLINE LaneVec at(std::int64_t j, std::int64_t c) const {
    const LaneFloats d;
    return hn::Mul(hn::Load(d, products + j * kBf16Panel + c), hn::Set(d, factor));
  }
};

/// Replaces the products of early rows (attention.h) in columns of a panel [keys, 32], whose first query is `row`, by
/// those of rounded queries with float32 keys, minus the row's origin: queries · (keys − origin). `query`
/// [padded(head_size)] is scratch.
inline HWY_NOINLINE void early_columns(const Origins<float>& origins, PackSource<float> keys,
                                       const PackSource<float>& queries, std::int64_t row, const PanelVisibility& seen,
                                       std::int64_t head_size, float* query, float* products) {
  const std::int64_t end = std::min(origins.first_row_of_seven, row + kBf16Panel);
  for (std::int64_t r = row; r < end; ++r) {
    float dots[kKeyBlock];
    const auto count = static_cast<std::int64_t>(seen.count[r - row]);
    keys.origin = origins.of_row(r);
    pack_head_rows<float>({queries.row(r), queries.stride, nullptr, nullptr, true}, 1, head_size, 1, query,
                          padded(head_size));
    dots_minus_origin(query, keys, count, head_size, dots);
    for (std::int64_t j = 0; j < count; ++j) products[j * kBf16Panel + r - row] = dots[j];
  }
}

/// The dropout factors of a panel by key, [keys, 32]: `keep` [32, kKeyBlock] holds them by query first. `turned` has
/// room for kKeyBlock rows of kKeyBlock numbers, of which the first 32 are used.
HWY_INLINE const float* dropout_by_key(const AttentionTile<float>& tile, const KeyBlock& keys, std::int64_t row,
                                       const PanelVisibility& seen, float* keep, float* turned) {
  const std::int64_t rows = std::min(kBf16Panel, tile.queries - row);
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto number = tile.first_weight + static_cast<std::uint64_t>((row + r) * tile.keys);
    dropout_row(tile.dropout, number, keys, static_cast<std::int64_t>(seen.count[r]), keep + r * kKeyBlock);
  }
  pack_head_transposed<float, kKeyBlock>({keep, kKeyBlock}, rows, seen.most, turned);
  return turned;
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // MAKI_HAVE_BF16

#endif  // MAKI_KERNELS_ATTENTION_BF16_PANELS_INL_H_
