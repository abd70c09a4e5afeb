// The register tile of GEMM and the loop over the tiles of one block. Included once for every SIMD target.
#if defined(MAKI_KERNELS_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_GEMM_TILE_INL_H_
#undef MAKI_KERNELS_GEMM_TILE_INL_H_
#else
#define MAKI_KERNELS_GEMM_TILE_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include <utility>

#include "autograd/kernels/gemm_block.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if defined(__clang__)
#define MAKI_UNROLL _Pragma("clang loop unroll(full)")
#else
#define MAKI_UNROLL _Pragma("GCC unroll 16")
#endif

// Rows of the tile, two vectors wide. AVX3 has 32 registers: 28 sums, 2 of B, 1 of A. AVX2 has 16: 12 + 2 + 1. Below, a
// product needs a register of its own.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
inline constexpr int kTileRows = 14;
#elif HWY_TARGET == HWY_AVX2
inline constexpr int kTileRows = 6;
#elif HWY_TARGET == HWY_NEON
inline constexpr int kTileRows = 12;
#else
inline constexpr int kTileRows = 4;
#endif

/// m rows as tiles of about equal height.
struct RowTiles {
  explicit RowTiles(std::int64_t m) : count((m + kTileRows - 1) / kTileRows), rows(m) {}
  std::int64_t begin(std::int64_t t) const { return rows * t / count; }
  std::int64_t count, rows;
};

template <class T>
using GemmVec = hn::ScalableTag<T>;

/// A packed tile of A is [k, this]: whole vectors, so that packing stores lines and k can be shared out.
template <class T>
inline constexpr std::int64_t kPackedRows =
    (kTileRows + hn::MaxLanes(GemmVec<T>()) - 1) / hn::MaxLanes(GemmVec<T>()) * hn::MaxLanes(GemmVec<T>());

/// One step of the chain of every element of the tile: a (kRows), b (kVecs vectors).
template <int kRows, int kVecs, bool kPackedA, class T, class V>
HWY_INLINE void gemm_step(const T* HWY_RESTRICT a, std::ptrdiff_t lda, const T* HWY_RESTRICT b,
                          V (&sum)[kRows][kVecs]) {
  const GemmVec<T> d;
  V bv[kVecs];
  MAKI_UNROLL for (int v = 0; v < kVecs; ++v) bv[v] = hn::Load(d, b + v * static_cast<int>(hn::Lanes(d)));
  MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
    const V av = hn::Set(d, kPackedA ? a[i] : a[i * lda]);
    MAKI_UNROLL for (int v = 0; v < kVecs; ++v) sum[i][v] = hn::MulAdd(av, bv[v], sum[i][v]);
  }
}

/// C [kRows, kVecs vectors] = (accumulate ? C : 0) + A B (+ bias), all columns there.
template <int kRows, int kVecs, bool kPackedA, class T>
HWY_NOINLINE void gemm_tile(std::int64_t k, const T* HWY_RESTRICT a, std::ptrdiff_t lda, const T* HWY_RESTRICT b,
                            T* HWY_RESTRICT c, std::ptrdiff_t ldc, bool accumulate, const T* HWY_RESTRICT bias) {
  const GemmVec<T> d;
  using V = hn::Vec<GemmVec<T>>;
  constexpr std::ptrdiff_t kLanes = hn::MaxLanes(d);
  constexpr std::ptrdiff_t kPanel = 2 * kLanes;
  V sum[kRows][kVecs];
  if (accumulate) {
    MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
      MAKI_UNROLL for (int v = 0; v < kVecs; ++v) sum[i][v] = hn::LoadU(d, c + i * ldc + v * kLanes);
    }
  } else {
    MAKI_UNROLL for (int i = 0; i < kRows; ++i) { MAKI_UNROLL for (int v = 0; v < kVecs; ++v) sum[i][v] = hn::Zero(d); }
  }
  constexpr std::ptrdiff_t kLine = 64 / sizeof(T), kAhead = 8 * kPanel;
  MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
    hwy::Prefetch(c + i * ldc);
    hwy::Prefetch(c + i * ldc + kVecs * kLanes - 1);
  }
  for (std::int64_t p = 0; p < k; ++p) {
    MAKI_UNROLL for (std::ptrdiff_t line = 0; line < kPanel; line += kLine) hwy::Prefetch(b + kAhead + line);
    gemm_step<kRows, kVecs, kPackedA>(a, lda, b, sum);
    a += kPackedA ? kPackedRows<T> : 1;
    b += kPanel;
  }
  if (bias != nullptr) {
    MAKI_UNROLL for (int v = 0; v < kVecs; ++v) {
      const V x = hn::LoadU(d, bias + v * kLanes);
      MAKI_UNROLL for (int i = 0; i < kRows; ++i) sum[i][v] = hn::Add(sum[i][v], x);
    }
  }
  MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
    MAKI_UNROLL for (int v = 0; v < kVecs; ++v) hn::StoreU(sum[i][v], d, c + i * ldc + v * kLanes);
  }
}

template <class T>
using GemmTileFunction = void (*)(std::int64_t, const T*, std::ptrdiff_t, const T*, T*, std::ptrdiff_t, bool, const T*);

/// The tile of 1 … kTileRows rows.
template <int kVecs, bool kPackedA, class T, int... kRows>
GemmTileFunction<T> gemm_tile_of(std::int64_t rows, std::integer_sequence<int, kRows...>) {
  static constexpr GemmTileFunction<T> kTable[] = {gemm_tile<kRows + 1, kVecs, kPackedA, T>...};
  return kTable[rows - 1];
}

template <class T>
GemmTileFunction<T> gemm_tile_of(std::int64_t rows, std::int64_t vecs, bool packed_a) {
  constexpr auto kAll = std::make_integer_sequence<int, kTileRows>();
  if (packed_a) return vecs == 1 ? gemm_tile_of<1, true, T>(rows, kAll) : gemm_tile_of<2, true, T>(rows, kAll);
  return vecs == 1 ? gemm_tile_of<1, false, T>(rows, kAll) : gemm_tile_of<2, false, T>(rows, kAll);
}

/// A tile that reaches over the right edge: computed in a buffer, so that nothing beyond column n is touched.
template <class T>
HWY_NOINLINE void gemm_edge(GemmTileFunction<T> tile, std::int64_t rows, std::int64_t columns, std::int64_t k,
                            const T* a, std::ptrdiff_t lda, const T* b, T* c, std::ptrdiff_t ldc, bool accumulate,
                            const T* bias) {
  constexpr std::ptrdiff_t kPanel = 2 * hn::MaxLanes(GemmVec<T>());
  HWY_ALIGN T buffer[kTileRows * kPanel];
  HWY_ALIGN T wide_bias[kPanel] = {};
  if (accumulate) {
    for (std::int64_t i = 0; i < rows; ++i) std::copy_n(c + i * ldc, columns, buffer + i * kPanel);
  }
  if (bias != nullptr) std::copy_n(bias, columns, wide_bias);
  tile(k, a, lda, b, buffer, kPanel, accumulate, bias != nullptr ? wide_bias : nullptr);
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(buffer + i * kPanel, columns, c + i * ldc);
}

/// Tile after tile: 14 rows of A stay in the level-1 cache while the panels of B pass from the level-2 cache.
template <class T>
HWY_INLINE void gemm_block(const GemmBlock<T>& g) {
  constexpr std::int64_t kLanes = hn::MaxLanes(GemmVec<T>()), kPanel = 2 * kLanes;
  const RowTiles tiles(g.m);
  for (std::int64_t t = 0; t < tiles.count; ++t) {
    const std::int64_t i = tiles.begin(t), rows = tiles.begin(t + 1) - i;
    const T* a = g.a + (g.a_packed ? t : i) * g.lda;
    for (std::int64_t j = 0; j < g.n; j += kPanel) {
      const std::int64_t columns = std::min(kPanel, g.n - j), vecs = columns <= kLanes ? 1 : 2;
      const GemmTileFunction<T> tile = gemm_tile_of<T>(rows, vecs, g.a_packed);
      const T* b = g.b + j / kPanel * g.panel_stride;
      const T* bias = g.bias != nullptr ? g.bias + j : nullptr;
      T* c = g.c + i * g.ldc + j;
      if (columns == vecs * kLanes) {
        tile(g.k, a, g.lda, b, c, g.ldc, g.accumulate, bias);
      } else {
        gemm_edge(tile, rows, columns, g.k, a, g.lda, b, c, g.ldc, g.accumulate, bias);
      }
    }
  }
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_GEMM_TILE_INL_H_
