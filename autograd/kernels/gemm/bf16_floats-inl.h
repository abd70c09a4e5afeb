// Products of operands rounded to bfloat16 on every target: packed operands are float32 numbers with the values of
// bfloat16 numbers. Included once for every SIMD target.
#if defined(MAKI_KERNELS_GEMM_BF16_FLOATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_GEMM_BF16_FLOATS_INL_H_
#undef MAKI_KERNELS_GEMM_BF16_FLOATS_INL_H_
#else
#define MAKI_KERNELS_GEMM_BF16_FLOATS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "autograd/kernels/gemm/bf16_block-inl.h"
#include "autograd/kernels/gemm/bf16_tile-inl.h"
#include "autograd/kernels/simd/lanes-inl.h"
#include "autograd/kernels/simd/partial-inl.h"
#include "autograd/kernels/simd/round-inl.h"
#include "autograd/kernels/simd/transpose-inl.h"
#include "autograd/kernels/simd/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Packs a row-major A.
template <class X>
void rounded_pack_rows(std::int64_t m, std::int64_t k, const X* a, std::int64_t lda, float* panel) {
  const RoundedFloats d;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t p = 0; p < k; p += kBf16Depth) {
      float* const to = panel + p * kBf16PanelWidth + i * kBf16Depth;
      for (std::int64_t s = 0; s < kBf16Depth; s += kRoundedLanes) {
        hn::Store(rounded_load(a + i * lda + p + s, k - p - s), d, to + s);
      }
    }
  }
}

/// Packs a transposed A, element (i, p) at a[p * lda + i].
inline void rounded_pack_rows_transposed(std::int64_t m, std::int64_t k, const GemmOperand<float>& a, std::int64_t lda,
                                         float* panel) {
  const RoundedFloats d;
  constexpr int kColumns = kLanesPer128<float>;
  HWY_ALIGN float buffer[kBf16Depth * kBf16PanelWidth];
  for (std::int64_t p = 0; p < k; p += kBf16Depth, panel += kBf16GroupElements) {
    const Bf16Block block = bf16_padded<kBf16Depth, kBf16PanelWidth>(k - p, m, a + p * lda, lda, buffer);
    for (std::int64_t s = 0; s < kBf16Depth; s += kRoundedLanes) {
      for (std::int64_t i = 0; i < m; i += kColumns) {
        RoundedVec x[1][kColumns];
        load_columns<1>(
            d, [&](std::int64_t lane) HWY_ATTR { return block.at + (s + lane) * block.stride + i; }, x);
        MAKI_UNROLL for (int c = 0; c < kColumns; ++c) {
          hn::Store(round_to_bf16(x[0][c]), d, panel + (i + c) * kBf16Depth + s);
        }
      }
    }
  }
}

/// Columns of B that a register tile reads: two vectors, so that each number of A that was loaded is used twice; with
/// more, the sums of the tile's rows would not fit into the registers. Packed B holds them together, step by step.
inline constexpr std::int64_t kRoundedColumns = 2 * kRoundedLanes;
/// The element of packed B for step p of the columns from j on.
HWY_INLINE float* rounded_columns(float* panels, std::int64_t panel_stride, std::int64_t p, std::int64_t j) {
  return bf16_columns<kBf16Depth>(panels, panel_stride, j / kRoundedColumns * kRoundedColumns) +
         p / kBf16Depth * kBf16GroupElements + p % kBf16Depth * kRoundedColumns + j % kRoundedColumns;
}

/// Packs a row-major B.
template <class X>
void rounded_pack_columns(std::int64_t k, std::int64_t n, const X* b, std::int64_t ldb, float* panels,
                          std::int64_t panel_stride) {
  const RoundedFloats d;
  for (std::int64_t p = 0; p < (k + kBf16Depth - 1) / kBf16Depth * kBf16Depth; ++p) {
    for (std::int64_t j = 0; j < n; j += kRoundedLanes) {
      hwy::Prefetch(b + (p + 16) * ldb + j);
      hn::Store(rounded_load(b + p * ldb + j, p < k ? n - j : 0), d, rounded_columns(panels, panel_stride, p, j));
    }
  }
}

/// Packs a transposed B, element (p, j) at b[j * ldb + p].
inline void rounded_pack_columns_transposed(std::int64_t k, std::int64_t n, const GemmOperand<float>& b,
                                            std::int64_t ldb, float* panels, std::int64_t panel_stride) {
  const RoundedFloats d;
  constexpr int kColumns = kLanesPer128<float>;
  HWY_ALIGN float buffer[kRoundedLanes * kBf16Depth];
  for (std::int64_t j = 0; j < n; j += kRoundedLanes) {
    for (std::int64_t p = 0; p < k; p += kBf16Depth) {
      const Bf16Block block = bf16_padded<kRoundedLanes, kBf16Depth>(n - j, k - p, b + (j * ldb + p), ldb, buffer);
      for (std::int64_t s = 0; s < kBf16Depth; s += kColumns) {
        RoundedVec x[1][kColumns];
        load_columns<1>(
            d, [&](std::int64_t lane) HWY_ATTR { return block.at + lane * block.stride + s; }, x);
        MAKI_UNROLL for (int c = 0; c < kColumns; ++c) {
          hn::Store(round_to_bf16(x[0][c]), d, rounded_columns(panels, panel_stride, p + s + c, j));
        }
      }
    }
  }
}

/// GEMM on rounded float32 numbers (bf16_block()): the steps of a chain are added one after the other.
struct Bf16Floats32 {
  using Element = float;
  static constexpr std::int64_t kElementsPerFloat = 1, kColumnElements = kBf16Depth;
  // Tiles divide the 32 rows of a panel about evenly: as 11 + 11 + 10 (22 sums in 32 registers), as 2 · 6 + 4 · 5 (12
  // sums in 16) or, where a product needs a register of its own, as 8 · 4.
  static constexpr int kTileRows = HWY_TARGET <= HWY_AVX3 ? 11 : HWY_ARCH_ARM_A64 ? 8 : HWY_TARGET == HWY_AVX2 ? 6 : 4;
  static constexpr int kTileColumns = kRoundedColumns, kRowsTogether = 1;

  static void pack_a(std::int64_t m, std::int64_t k, const GemmOperand<float>& a, std::int64_t lda, bool transposed,
                     float* panel) {
    if (transposed) return rounded_pack_rows_transposed(m, k, a, lda, panel);
    with_elements(a, [&](auto* x) { rounded_pack_rows(m, k, x, lda, panel); });
  }
  static void pack_b(std::int64_t k, std::int64_t n, const GemmOperand<float>& b, std::int64_t ldb, bool transposed,
                     float* panels, std::int64_t panel_stride) {
    if (transposed) return rounded_pack_columns_transposed(k, n, b, ldb, panels, panel_stride);
    with_elements(b, [&](auto* x) { rounded_pack_columns(k, n, x, ldb, panels, panel_stride); });
  }
  /// Rounds n numbers.
  static void round_row(std::int64_t n, const float* x, BFloat16* y, [[maybe_unused]] bool streams) {
    for (std::int64_t j = 0; j < n; j += kRoundedLanes) {
      const RoundedVec rounded = rounded_load(x + j, n - j);
      if constexpr (kRoundedLanes >= 8) {  // Highway streams at least 16 bytes
        if (streams && j + kRoundedLanes <= n) {
          hn::Stream(upper_halves(rounded), RoundedHalves(), reinterpret_cast<std::uint16_t*>(y + j));
          continue;
        }
      }
      store_rounded(rounded, y + j, n - j);
    }
  }
  /// sum += the steps of a group, in ascending order.
  template <class D, class V, int kRows, int kVecs>
  static HWY_INLINE void add_group(D d, const float* a, const float* b, V (&sum)[kRows][kVecs]) {
    // The last steps of a group prefetch the first ones of the next, which do not follow them: a panel holds several
    // tiles of columns. 8 steps ahead, as in gemm_chain(): B comes from the level-2 cache.
    constexpr std::int64_t kAheadSteps = 8, kAheadElements = kAheadSteps * kRoundedColumns;
    constexpr std::int64_t kSkippedElements = kBf16GroupElements - kBf16Depth * kRoundedColumns;
    constexpr std::int64_t kFirstSteps = kBf16Depth - kAheadSteps;
    add_steps<kFirstSteps, kAheadElements>(d, a, b, sum);
    add_steps<kAheadSteps, kAheadElements + kSkippedElements>(d, a + kFirstSteps, b + kFirstSteps * kRoundedColumns,
                                                              sum);
  }
  /// sum += kSteps steps, with B prefetched kAheadElements ahead.
  template <std::int64_t kSteps, std::int64_t kAheadElements, class D, class V, int kRows, int kVecs>
  static HWY_INLINE void add_steps(D d, const float* a, const float* b, V (&sum)[kRows][kVecs]) {
    constexpr int kRound = MAKI_ROUND_STEPS(float);
    static_assert(kSteps % kRound == 0);
    for (std::int64_t p = 0; p < kSteps; p += kRound, a += kRound, b += kRound * kRoundedColumns) {
      V y[kRound][kVecs];
      const auto load = [&](int step) HWY_ATTR {
        MAKI_UNROLL for (std::int64_t v = 0; v < kRoundedColumns; v += 16) {
          if (step * kRoundedColumns % 16 == 0) hwy::Prefetch(b + kAheadElements + step * kRoundedColumns + v);
        }
        MAKI_UNROLL for (int v = 0; v < kVecs; ++v) {
          y[step][v] = hn::Load(d, b + step * kRoundedColumns + v * kRoundedLanes);
        }
      };
      if constexpr (kMultipliesByLane) {
        MAKI_UNROLL for (int step = 0; step < kRound; ++step) load(step);
        add_steps_by_lane([&](int i) HWY_ATTR { return hn::Load(d, a + i * kBf16Depth); }, y, sum);
      } else {
        MAKI_UNROLL for (int step = 0; step < kRound; ++step) {
          load(step);
          MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
            const V x = hn::Set(d, a[i * kBf16Depth + step]);
            MAKI_UNROLL for (int v = 0; v < kVecs; ++v) sum[i][v] = hn::MulAdd(x, y[step][v], sum[i][v]);
          }
        }
      }
    }
  }
  static void tile(std::int64_t rows, const Bf16TileCall<float>& call) { bf16_tile_of<Bf16Floats32>(rows, call); }
};

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_GEMM_BF16_FLOATS_INL_H_
