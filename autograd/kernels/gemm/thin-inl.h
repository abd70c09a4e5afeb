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
#include "autograd/kernels/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

/// Never called: kMaxThinRows is 0.
template <class T>
void gemm_thin_columns(const Gemm<T>&, std::int64_t, std::int64_t) {}

#else

/// The column of C that each lane computes: first, first + apart, … A lane for which that is n or more has no column:
/// gather() gives it 0 and scatter() skips it, neither touching memory, because another thread may be writing the last
/// column of C. kWhole means that every lane has a column.
template <bool kWhole, class T>
struct ThinColumns {
  static constexpr std::int64_t kLanes = hn::MaxLanes(GemmVec<T>());
  using V = hn::Vec<GemmVec<T>>;

  HWY_INLINE bool has(std::int64_t lane) const { return kWhole || first + lane * apart < n; }
  /// The column of a lane. For a lane without one it is the last column, so that B can be loaded by whole vectors.
  HWY_INLINE std::int64_t operator[](std::int64_t lane) const { return has(lane) ? first + lane * apart : n - 1; }
  /// from[column · stride] in every lane that has a column, else 0.
  HWY_INLINE V gather(const T* from, std::int64_t stride) const {
    HWY_ALIGN T x[kLanes];
    for (std::int64_t lane = 0; lane < kLanes; ++lane) x[lane] = has(lane) ? from[(*this)[lane] * stride] : T{0};
    return hn::Load(GemmVec<T>(), x);
  }
  /// to[column] = v, for every lane that has a column.
  HWY_INLINE void scatter(V v, T* to) const {
    HWY_ALIGN T x[kLanes];
    hn::Store(v, GemmVec<T>(), x);
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      if (has(lane)) to[(*this)[lane]] = x[lane];
    }
  }

  std::int64_t n, first, apart;
};

/// Applies the activation to finished elements of row i. It is a function of its own because it is called for every row
/// of every tile; inlined there, it accounted for more than a third of the compile time.
template <class T, class Columns, class V>
HWY_NOINLINE void activate_thin(const Gemm<T>& g, const Columns& columns, std::int64_t i, V& x) {
  const GemmVec<T> d;
  V derivative;
  x = g.activation == GemmActivation::gelu ? GeluAndDerivative(d, x, derivative)
                                           : GeluTanhAndDerivative(d, x, derivative);
  if (g.derivative != nullptr) columns.scatter(derivative, g.derivative + i * g.ldc);
}

/// Adds the bias to finished elements of row i, applies the activation and stores them.
template <class T, class Columns, class V>
HWY_INLINE void finish_thin(const Gemm<T>& g, const Columns& columns, std::int64_t i, V x) {
  if (g.bias != nullptr) x = hn::Add(x, columns.gather(g.bias, 1));
  if (g.activation != GemmActivation::none) activate_thin(g, columns, i, x);
  columns.scatter(x, g.c + i * g.ldc);
}

/// C [kRows, columns] = activation(beta C + A Bᵀ + bias), chain by chain. A column of C belongs to one row of B; the
/// tile reads kThinPieces pieces of 16 bytes of each of these rows in turn and prefetches 1 KiB ahead in each (chosen
/// without a measurement).
template <int kRows, bool kWhole, class T>
HWY_NOINLINE void thin_tile(const Gemm<T>& g, const ThinColumns<kWhole, T>& columns) {
  const GemmVec<T> d;
  using V = hn::Vec<GemmVec<T>>;
  constexpr std::int64_t kSteps = kThinPieces * kLanesPer128<T>, kAhead = 1024 / sizeof(T);
  V sum[kRows], total[kRows];
  MAKI_UNROLL for (int i = 0; i < kRows; ++i) {  // x + -0 is x for every x, also for -0
    total[i] = g.beta == 1 ? columns.gather(g.c + i * g.ldc, 1) : hn::Set(d, T{-0.0});
  }
  const auto step = [&](std::int64_t p, V b) HWY_ATTR {
    MAKI_UNROLL for (int i = 0; i < kRows; ++i) sum[i] = hn::MulAdd(hn::Set(d, g.a.values[i * g.lda + p]), b, sum[i]);
  };
  std::int64_t p = 0;
  do {
    const std::int64_t end = std::min(g.k, p + kGemmChainLength);
    MAKI_UNROLL for (int i = 0; i < kRows; ++i) sum[i] = hn::Zero(d);
    for (; p + kSteps <= end; p += kSteps) {
      V b[kThinPieces][kLanesPer128<T>];
      load_columns<kThinPieces>(
          d,
          [&](std::int64_t lane) HWY_ATTR {
            const T* const row = g.b.values + columns[lane] * g.ldb + p;
            hwy::Prefetch(row + kAhead);
            return row;
          },
          b);
      MAKI_UNROLL for (int q = 0; q < kThinPieces; ++q) {
        MAKI_UNROLL for (int r = 0; r < kLanesPer128<T>; ++r) step(p + q * kLanesPer128<T> + r, b[q][r]);
      }
    }
    for (; p < end; ++p) step(p, columns.gather(g.b.values + p, g.ldb));
    MAKI_UNROLL for (int i = 0; i < kRows; ++i) total[i] = hn::Add(total[i], sum[i]);
  } while (p < g.k);
  MAKI_UNROLL for (int i = 0; i < kRows; ++i) finish_thin(g, columns, i, total[i]);
}

/// Steps [begin, end) of a product; a step is one vector of columns. If B takes 2 MiB or more, the columns are
/// divided into one group per lane, and step t takes column t of each group: a lane then reads rows of B that follow
/// one another, so that memory is read in a few long streams (33 GB/s, where a single stream gave 21 to 27). If B is
/// smaller, the columns of a step are adjacent, so that two threads rarely write the same cache line of C. The bound of
/// 2 MiB was chosen without a measurement.
template <int kRows, class T>
void gemm_thin_rows(const Gemm<T>& g, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kLanes = hn::MaxLanes(GemmVec<T>()), kLargeBElements = (2 << 20) / sizeof(T);
  const std::int64_t group = ceil_div(g.n, kLanes);
  const bool streams = g.n * g.k >= kLargeBElements;
  for (std::int64_t t = begin; t < end; ++t) {
    const std::int64_t first = streams ? t : t * kLanes, apart = streams ? group : 1;
    if (g.n % kLanes == 0) {
      thin_tile<kRows>(g, ThinColumns<true, T>{g.n, first, apart});
    } else {
      thin_tile<kRows>(g, ThinColumns<false, T>{g.n, first, apart});
    }
  }
}

template <class T, int... kRows>
void gemm_thin_of(const Gemm<T>& g, std::int64_t begin, std::int64_t end, std::integer_sequence<int, kRows...>) {
  static constexpr void (*kTable[])(const Gemm<T>&, std::int64_t, std::int64_t) = {gemm_thin_rows<kRows + 1, T>...};
  kTable[g.m - 1](g, begin, end);
}

/// GemmKernels::stream() for one target; 1 <= m <= kMaxThinRows.
template <class T>
void gemm_thin_columns(const Gemm<T>& g, std::int64_t begin, std::int64_t end) {
  gemm_thin_of(g, begin, end, std::make_integer_sequence<int, kMaxThinRows>());
}

#endif

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_GEMM_THIN_INL_H_
