// Float32 products on AMX tiles. Every number is split into the sum of three bfloat16 numbers, high + middle + low
// (Henry, Tang, Heinecke 2019, arXiv:1904.06376). Of the nine products of two such sums, six are computed; the other
// three together are below 2^-24 of the product. Of every 128 steps of a chain, the five small products are added
// before the large one (high · high). The first 128 steps of a chain that starts at 0 therefore round their sum four
// times at its full size, and each further 128 steps round the running sum 24 times (20 small and 4 large tile
// products), where a chain of fused multiply-adds rounds it 128 times; so the elements of C are closer to the exact
// values.
//
// Included once for every SIMD target; empty unless it is an x86-64 target with AVX-512. Whether the CPU has AMX is
// asked at run time: amx::available().
#if defined(MAKI_KERNELS_GEMM_AMX_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_GEMM_AMX_TILE_INL_H_
#undef MAKI_KERNELS_GEMM_AMX_TILE_INL_H_
#else
#define MAKI_KERNELS_GEMM_AMX_TILE_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <hwy/highway.h>

#include "autograd/core/parallel.h"
#include "autograd/kernels/gemm/activate-inl.h"
#include "autograd/kernels/gemm/amx.h"
#include "autograd/kernels/gemm/amx_pack-inl.h"
#include "autograd/kernels/gemm/block.h"
#include "autograd/kernels/simd/partial-inl.h"

#if MAKI_HAVE_AMX
HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// One register tile of up to 2 × 2 AMX tiles: sum [16 kTilesDown, 16 kTilesAcross] = A B + (start_row in every row, or
/// 0).
struct AmxTileCall {
  std::int64_t groups;         // length of the chain in groups of kAmxTileDepth steps
  const std::uint16_t *a, *b;  // packed panels
  float* sum;                  // where the sum is stored: C itself or a buffer
  std::ptrdiff_t stride;       // elements between rows of sum
  const float* start_row;      // the row (of the bias) that each row of the sum starts from; null: zeros
  const float* c;              // the rows of C that will finally be written, ldc apart; here only to prefetch them
  std::int64_t rows;           // of C in this tile; only for the prefetch
  std::ptrdiff_t ldc;
};

// Tile registers 0 to 3 hold the sums, 4 and 5 hold A, 6 and 7 hold B.

template <int kTilesDown, int kTilesAcross>
HWY_INLINE void amx_multiply() {
  amx::multiply<0, 4, 6>();
  if constexpr (kTilesAcross == 2) amx::multiply<1, 4, 7>();
  if constexpr (kTilesDown == 2) amx::multiply<2, 5, 6>();
  if constexpr (kTilesDown == 2 && kTilesAcross == 2) amx::multiply<3, 5, 7>();
}
template <int kTilesDown>
HWY_INLINE void amx_load_a(const std::uint16_t* piece) {
  amx::load<4>(piece, 64);
  if constexpr (kTilesDown == 2) amx::load<5>(piece + kAmxSplitTileElements, 64);
}
template <int kTilesAcross>
HWY_INLINE void amx_load_b(const std::uint16_t* piece) {
  amx::load<6>(piece, 64);
  if constexpr (kTilesAcross == 2) amx::load<7>(piece + kAmxSplitTileElements, 64);
}

/// The five small products of a group: high · low, high · middle, middle · middle, middle · high, low · high. Other
/// orders of loads and multiplications were no faster.
template <int kTilesDown, int kTilesAcross>
HWY_INLINE void amx_small(const std::uint16_t* a, const std::uint16_t* b) {
  amx_load_a<kTilesDown>(a + kAmxHighOffset);
  amx_load_b<kTilesAcross>(b + kAmxLowOffset);
  amx_multiply<kTilesDown, kTilesAcross>();
  amx_load_b<kTilesAcross>(b + kAmxMiddleOffset);
  amx_multiply<kTilesDown, kTilesAcross>();
  amx_load_a<kTilesDown>(a + kAmxMiddleOffset);
  amx_multiply<kTilesDown, kTilesAcross>();
  amx_load_b<kTilesAcross>(b + kAmxHighOffset);
  amx_multiply<kTilesDown, kTilesAcross>();
  amx_load_a<kTilesDown>(a + kAmxLowOffset);
  amx_multiply<kTilesDown, kTilesAcross>();
}

/// The large product of a group: high · high.
template <int kTilesDown, int kTilesAcross>
HWY_INLINE void amx_large(const std::uint16_t* a, const std::uint16_t* b) {
  amx_load_a<kTilesDown>(a + kAmxHighOffset);
  amx_load_b<kTilesAcross>(b + kAmxHighOffset);
  amx_multiply<kTilesDown, kTilesAcross>();
}

/// Prefetches up to `rows` of the rows of C that a tile will write, from `row` on, and advances `row`. amx_tile() calls
/// it once per group of steps until all rows are done, 256 steps at the latest (not measured). Without prefetching, a
/// tile of K = 256 takes three times as long if its lines of C are in memory.
template <int kTilesAcross>
HWY_INLINE void amx_prefetch(std::int64_t rows, const float* end, std::ptrdiff_t ldc, const float*& row) {
  for (std::int64_t i = 0; i < rows && row != end; ++i, row += ldc) {
    MAKI_UNROLL for (int t = 0; t < kTilesAcross; ++t) __builtin_prefetch(row + t * kAmxTileRows, 1);
    __builtin_prefetch(row + kTilesAcross * kAmxTileRows - 1, 1);
  }
}

/// Computes the tile of a call: kTilesDown by kTilesAcross AMX tiles of 16 × 16 sums.
template <int kTilesDown, int kTilesAcross>
HWY_NOINLINE void amx_tile(const AmxTileCall& call) {
  const std::ptrdiff_t stride = call.stride * std::ptrdiff_t{sizeof(float)}, half = kAmxTileRows * call.stride;
  if (call.start_row != nullptr) {
    amx::load<0>(call.start_row, 0);
    if constexpr (kTilesAcross == 2) amx::load<1>(call.start_row + kAmxTileRows, 0);
    if constexpr (kTilesDown == 2) amx::load<2>(call.start_row, 0);
    if constexpr (kTilesDown == 2 && kTilesAcross == 2) amx::load<3>(call.start_row + kAmxTileRows, 0);
  } else {
    amx::zero<0>();
    if constexpr (kTilesAcross == 2) amx::zero<1>();
    if constexpr (kTilesDown == 2) amx::zero<2>();
    if constexpr (kTilesDown == 2 && kTilesAcross == 2) amx::zero<3>();
  }
  constexpr std::int64_t kSmallFirstGroups = kAmxSmallFirstDepth / kAmxTileDepth;
  const std::int64_t rows_ahead =
      ceil_div(kTilesDown * kAmxTileRows, std::clamp<std::int64_t>(call.groups, 1, 2 * kSmallFirstGroups));
  const float *ahead = call.c, *const ahead_end = ahead + call.rows * call.ldc;
  for (std::int64_t begin = 0; begin < call.groups; begin += kSmallFirstGroups) {
    const std::int64_t end = std::min(call.groups, begin + kSmallFirstGroups);
    for (std::int64_t g = begin; g < end; ++g) {
      if (ahead != ahead_end) amx_prefetch<kTilesAcross>(rows_ahead, ahead_end, call.ldc, ahead);
      amx_small<kTilesDown, kTilesAcross>(call.a + g * kAmxGroupElements, call.b + g * kAmxGroupElements);
    }
    for (std::int64_t g = begin; g < end; ++g) {
      amx_large<kTilesDown, kTilesAcross>(call.a + g * kAmxGroupElements, call.b + g * kAmxGroupElements);
    }
  }
  amx::store<0>(call.sum, stride);
  if constexpr (kTilesAcross == 2) amx::store<1>(call.sum + kAmxTileRows, stride);
  if constexpr (kTilesDown == 2) amx::store<2>(call.sum + half, stride);
  if constexpr (kTilesDown == 2 && kTilesAcross == 2) amx::store<3>(call.sum + half + kAmxTileRows, stride);
}

/// Computes a tile of up to 32 rows and 32 columns.
inline void amx_tile_of(std::int64_t rows, std::int64_t columns, const AmxTileCall& call) {
  if (rows > kAmxTileRows) {
    columns > kAmxTileRows ? amx_tile<2, 2>(call) : amx_tile<2, 1>(call);
  } else {
    columns > kAmxTileRows ? amx_tile<1, 2>(call) : amx_tile<1, 1>(call);
  }
}

/// A tile that is added to C or extends beyond its edge: computed in a buffer, then added or copied to C.
inline HWY_NOINLINE void amx_buffered(std::int64_t rows, std::int64_t columns, bool accumulate, float* c,
                                      AmxTileCall call) {
  const AmxFloats d;
  HWY_ALIGN float buffer[kAmxPanelWidth * kAmxPanelWidth];
  HWY_ALIGN float first[kAmxPanelWidth] = {};
  if (call.start_row != nullptr) {
    std::copy_n(call.start_row, columns, first);
    call.start_row = first;
  }
  call.sum = buffer;
  call.stride = kAmxPanelWidth;
  amx_tile_of(rows, columns, call);
  for (std::int64_t j = 0; j < columns; j += kAmxTileRows) {
    const std::int64_t count = std::min(kAmxTileRows, columns - j);
    for (std::int64_t i = 0; i < rows; ++i) {
      float* const to = c + i * call.ldc + j;
      AmxVec sum = hn::Load(d, buffer + i * kAmxPanelWidth + j);
      if (accumulate) sum = hn::Add(LoadPartial(d, to, count), sum);
      StorePartial(sum, d, to, count);
    }
  }
}

/// Computes one GemmBlock (gemm/block.h), with its bias and activation, 32 rows at a time. Panel strides count float32
/// numbers, each the space of two bfloat16 numbers; hence the factors 2. Requires: this thread holds an
/// amx::TileConfig.
inline void amx_block(const GemmBlock<float>& g) {
  AmxTileCall call{};
  call.groups = ceil_div(g.k, kAmxTileDepth);
  call.ldc = g.ldc;
  auto* const own_a = reinterpret_cast<std::uint16_t*>(g.a_buffer);
  const auto* b = reinterpret_cast<const std::uint16_t*>(g.b.values);
  std::int64_t panel = 2 * g.ldb;
  if (g.b_layout != GemmLayoutB::packed) {
    auto* const own = reinterpret_cast<std::uint16_t*>(g.b_buffer);
    panel = call.groups * kAmxGroupElements;
    amx_pack_b(g.k, g.n, g.b.values, g.ldb, g.b_layout == GemmLayoutB::column_major, own, panel);
    b = own;
  }
  for (std::int64_t i = 0; i < g.m; i += kAmxPanelWidth) {
    const std::int64_t rows = std::min(kAmxPanelWidth, g.m - i);
    call.rows = rows;
    if (g.a_packed) {
      call.a = reinterpret_cast<const std::uint16_t*>(g.a.values) + i / kAmxPanelWidth * 2 * g.lda;
    } else {
      amx_pack_a(rows, g.k, g.a.values + (g.a_transposed ? i : i * g.lda), g.lda, g.a_transposed, own_a);
      call.a = own_a;
    }
    for (std::int64_t j = 0; j < g.n; j += kAmxPanelWidth) {
      const std::int64_t columns = std::min(kAmxPanelWidth, g.n - j);
      float* const c = g.c + i * g.ldc + j;
      call.b = b + j / kAmxPanelWidth * panel;
      call.start_row = g.bias != nullptr ? g.bias + j : nullptr;
      call.c = c;
      if (g.accumulate || rows % kAmxTileRows != 0 || columns % kAmxTileRows != 0) {
        amx_buffered(rows, columns, g.accumulate, c, call);
      } else {
        call.sum = c;
        call.stride = g.ldc;
        amx_tile_of(rows, columns, call);
      }
    }
    finish_rows(g, i, i + rows);
  }
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // MAKI_HAVE_AMX

#endif  // MAKI_KERNELS_GEMM_AMX_TILE_INL_H_
