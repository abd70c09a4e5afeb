// Products of few rows with a transposed B, as in generation: y = x · weightᵀ with the weights in their own layout.
// Each element of B is used by these few rows only, so packing it would not pay: B is streamed from memory and
// transposed in registers. Included once for every SIMD target.
#if defined(MAKI_KERNELS_GEMM_THIN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_GEMM_THIN_INL_H_
#undef MAKI_KERNELS_GEMM_THIN_INL_H_
#else
#define MAKI_KERNELS_GEMM_THIN_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include <utility>

#include "autograd/core/parallel.h"
#include "autograd/kernels/gemm/gemm.h"
#include "autograd/kernels/gemm/tile-inl.h"
#include "autograd/kernels/simd/activation-inl.h"
#include "autograd/kernels/simd/lanes-inl.h"
#include "autograd/kernels/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

/// Never called: kMaxThinRows is 0.
inline void gemm_thin_columns(const Gemm<float>&, std::int64_t, std::int64_t) {}

#else

using ThinVec = GemmVec<float>;
inline constexpr std::int64_t kThinLanes = hn::MaxLanes(ThinVec());

/// The column of C that each lane computes: first, first + apart, … Only the first `count` lanes have one; the others
/// touch no memory of C, because another thread may be writing its last column.
class ThinColumns {
 public:
  using V = hn::Vec<ThinVec>;

  ThinColumns(const Gemm<float>& g, std::int64_t first, std::int64_t apart) : first_(first), apart_(apart) {
    count_ = std::min(kThinLanes, ceil_div(g.n - first, apart));
    const float* row = g.b.values + first * g.ldb;
    for (std::int64_t lane = 0; lane < kThinLanes; ++lane) {
      b_[lane] = row;
      if (lane + 1 < count_) row += apart * g.ldb;
    }
  }

  /// The row of B for a lane. Lanes without a column have that of the last one, so that B can be loaded by whole
  /// vectors.
  HWY_INLINE const float* b(std::int64_t lane) const { return b_[lane]; }
  /// Element p of the row of B for every lane.
  HWY_INLINE V gather_b(std::int64_t p) const {
    HWY_ALIGN float x[kThinLanes];
    for (std::int64_t lane = 0; lane < kThinLanes; ++lane) x[lane] = b_[lane][p];
    return hn::Load(ThinVec(), x);
  }
  /// from[column] in every lane that has a column, else 0.
  HWY_INLINE V gather(const float* from) const {
    HWY_ALIGN float x[kThinLanes] = {};
    for (std::int64_t lane = 0; lane < kThinLanes; ++lane) {
      if (lane < count_) x[lane] = from[first_ + lane * apart_];
    }
    return hn::Load(ThinVec(), x);
  }
  /// to[column] = v, for every lane that has a column.
  HWY_INLINE void scatter(V v, float* to) const {
    HWY_ALIGN float x[kThinLanes];
    hn::Store(v, ThinVec(), x);
    for (std::int64_t lane = 0; lane < kThinLanes; ++lane) {
      if (lane < count_) to[first_ + lane * apart_] = x[lane];
    }
  }

 private:
  std::int64_t first_, apart_, count_;
  const float* b_[kThinLanes];
};

/// Applies the activation to finished elements of row i. They are passed by reference: after a function with a vector
/// argument, GCC does not clear the upper halves of the registers, which makes code without AVX slow.
HWY_NOINLINE void activate_thin(const Gemm<float>& g, const ThinColumns& columns, std::int64_t i, ThinColumns::V& x) {
  const ThinVec d;
  ThinColumns::V derivative;
  x = g.activation == GemmActivation::gelu ? GeluAndDerivative(d, x, derivative)
                                           : GeluTanhAndDerivative(d, x, derivative);
  if (g.derivative != nullptr) columns.scatter(derivative, g.derivative + i * g.ldc);
}

/// Adds the bias to finished elements of row i, applies the activation and stores them.
HWY_INLINE void finish_thin(const Gemm<float>& g, const ThinColumns& columns, std::int64_t i, ThinColumns::V x) {
  if (g.bias != nullptr) x = hn::Add(x, columns.gather(g.bias));
  if (g.activation != GemmActivation::none) activate_thin(g, columns, i, x);
  columns.scatter(x, g.c + i * g.ldc);
}

/// C [m, columns] = activation(beta C + A Bᵀ + bias), chain by chain, for m <= kRows; rows from m on repeat the last
/// one and are not stored. A column of C belongs to one row of B; the tile reads kThinPieces pieces of 16 bytes of each
/// of these rows in turn and prefetches ahead in each.
template <int kRows>
HWY_NOINLINE void thin_tile(const Gemm<float>& g, const ThinColumns& columns) {
  const ThinVec d;
  using V = ThinColumns::V;
  constexpr std::int64_t kPieceSteps = kLanesPer128<float>, kTurnSteps = kThinPieces * kPieceSteps;
  // Far enough for the latency of memory, and near enough that what 16 lanes have prefetched, 16 KiB, stays in the
  // level-1 cache.
  constexpr std::int64_t kAheadFloats = 1024 / sizeof(float);
  V sum[kRows][1], total[kRows];
  std::int64_t row[kRows];
  MAKI_UNROLL for (int i = 0; i < kRows; ++i) {  // x + -0 is x for every x, also for -0
    row[i] = std::min<std::int64_t>(i, g.m - 1);
    total[i] = g.beta == 1 ? columns.gather(g.c + row[i] * g.ldc) : hn::Set(d, -0.0F);
    row[i] *= g.lda;
  }
  const auto step = [&](std::int64_t p, V b) HWY_ATTR {
    MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
      sum[i][0] = hn::MulAdd(hn::Set(d, g.a.values[row[i] + p]), b, sum[i][0]);
    }
  };
  std::int64_t p = 0;
  do {
    const std::int64_t end = std::min(g.k, p + kGemmChainLength);
    MAKI_UNROLL for (int i = 0; i < kRows; ++i) sum[i][0] = hn::Zero(d);
    for (; p + kTurnSteps <= end; p += kTurnSteps) {
      V b[kThinPieces][kPieceSteps];
      load_columns<kThinPieces>(
          d,
          [&](std::int64_t lane) HWY_ATTR {
            const float* const from = columns.b(lane) + p;
            hwy::Prefetch(from + kAheadFloats);
            return from;
          },
          b);
      MAKI_UNROLL for (int q = 0; q < kThinPieces; ++q) {
        if constexpr (kMultipliesByLane) {
          V steps[kPieceSteps][1];
          MAKI_UNROLL for (int r = 0; r < kPieceSteps; ++r) steps[r][0] = b[q][r];
          const float* const a = g.a.values + p + q * kPieceSteps;
          add_steps_by_lane([&](int i) HWY_ATTR { return hn::LoadU(d, a + row[i]); }, steps, sum);
        } else {
          MAKI_UNROLL for (int r = 0; r < kPieceSteps; ++r) step(p + q * kPieceSteps + r, b[q][r]);
        }
      }
    }
    for (; p < end; ++p) step(p, columns.gather_b(p));
    MAKI_UNROLL for (int i = 0; i < kRows; ++i) total[i] = hn::Add(total[i], sum[i][0]);
  } while (p < g.k);
  for (int i = 0; i < kRows && i < g.m; ++i) finish_thin(g, columns, i, total[i]);
}

/// The tile for m rows. A tile for every number of rows would take several times as long to compile.
inline auto thin_tile_of(std::int64_t m) {
  using Tile = void (*)(const Gemm<float>&, const ThinColumns&);
  static constexpr std::pair<std::int64_t, Tile> kTiles[] = {{1, &thin_tile<1>},
                                                             {2, &thin_tile<2>},
                                                             {3, &thin_tile<3>},
                                                             {4, &thin_tile<4>},
                                                             {6, &thin_tile<6>},
                                                             {8, &thin_tile<8>},
                                                             {11, &thin_tile<std::min(11, kMaxThinRows)>},
                                                             {kMaxThinRows, &thin_tile<kMaxThinRows>}};
  return std::ranges::find_if(kTiles, [&](const auto& tile) { return m <= tile.first; })->second;
}

/// GemmKernels::stream() for one target. If B does not fit in a level-2 cache of 2 MiB, the columns are divided into
/// one group per lane, and step t takes column t of each group: a lane then reads rows of B that follow one another, so
/// that memory is read in a few long streams (33 GB/s, where a single stream gave 21 to 27). If B is smaller, the
/// columns of a step are adjacent, so that two threads rarely write the same cache line of C.
inline void gemm_thin_columns(const Gemm<float>& g, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kLevel2CacheFloats = (2 << 20) / sizeof(float);
  const auto tile = thin_tile_of(g.m);
  const bool streams = g.n * g.k >= kLevel2CacheFloats;
  for (std::int64_t t = begin; t < end; ++t) {
    tile(g, streams ? ThinColumns(g, t, ceil_div(g.n, kThinLanes)) : ThinColumns(g, t * kThinLanes, 1));
  }
}

#endif

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_GEMM_THIN_INL_H_
