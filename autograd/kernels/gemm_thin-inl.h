// Products of few rows with a B in columns (generation: y = x · weightᵀ, the weights as they lie). Every element of B
// serves these rows only, so B streams from memory through the registers and is packed nowhere. Included once for every
// SIMD target.
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

#include "autograd/core/parallel.h"
#include "autograd/kernels/activation-inl.h"
#include "autograd/kernels/gemm.h"
#include "autograd/kernels/gemm_tile-inl.h"
#include "autograd/kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

inline constexpr int kThinRows = 0;

template <class T>
void gemm_thin_columns(const Gemm<T>&, std::int64_t, std::int64_t) {}

#else

inline constexpr int kThinRows = 8;

/// Column t of every one of `lanes` equal groups of columns, one in each lane. So a lane reads rows of B that follow
/// one another, and memory is read in a few long streams: 33 GB/s where a single one gave 21 to 27. Unless kWhole,
/// groups at the end are short: those that are missing read the last column and write nothing.
template <bool kWhole, class T>
struct ThinColumns {
  static constexpr std::int64_t kLanes = hn::MaxLanes(GemmVec<T>());
  using V = hn::Vec<GemmVec<T> >;

  HWY_INLINE std::int64_t operator[](std::int64_t lane) const {
    return kWhole ? lane * group + t : std::min(lane * group + t, n - 1);
  }
  /// from[column · stride] in every lane.
  HWY_INLINE V gather(const T* from, std::int64_t stride) const {
    HWY_ALIGN T x[kLanes];
    for (std::int64_t lane = 0; lane < kLanes; ++lane) x[lane] = from[(*this)[lane] * stride];
    return hn::Load(GemmVec<T>(), x);
  }
  HWY_INLINE void scatter(V v, T* to) const {
    HWY_ALIGN T x[kLanes];
    hn::Store(v, GemmVec<T>(), x);
    for (std::int64_t lane = 0; lane < kLanes && (kWhole || lane * group + t < n); ++lane) to[(*this)[lane]] = x[lane];
  }

  std::int64_t n, group, t;
};

/// Finished elements of row i: bias, activation, out they go.
template <class T, class Columns, class V>
HWY_INLINE void finish_thin(const Gemm<T>& g, const Columns& columns, std::int64_t i, V x) {
  const GemmVec<T> d;
  if (g.bias != nullptr) x = hn::Add(x, columns.gather(g.bias, 1));
  if (g.activation != Activation::none) {
    V derivative;
    x = g.activation == Activation::gelu_erf ? GeluAndDerivative(d, x, derivative)
                                             : GeluTanhAndDerivative(d, x, derivative);
    if (g.derivative != nullptr) columns.scatter(derivative, g.derivative + i * g.ldc);
  }
  columns.scatter(x, g.c + i * g.ldc);
}

/// The chains of those columns, for all rows of A.
template <int kRows, bool kWhole, class T>
HWY_NOINLINE void thin_tile(const Gemm<T>& g, const ThinColumns<kWhole, T>& columns) {
  const GemmVec<T> d;
  using V = hn::Vec<GemmVec<T> >;
  constexpr int kPieces = HWY_TARGET <= HWY_AVX3 ? 4 : 2;  // a line, where the registers hold it
  constexpr std::int64_t kSteps = kPieces * kPiece<T>, kAhead = 1024 / sizeof(T);
  V sum[kRows];
  MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
    sum[i] = g.beta == 1 ? columns.gather(g.c + i * g.ldc, 1) : hn::Zero(d);
  }
  const auto step = [&](std::int64_t p, V b) HWY_ATTR {
    MAKI_UNROLL for (int i = 0; i < kRows; ++i) sum[i] = hn::MulAdd(hn::Set(d, g.a[i * g.lda + p]), b, sum[i]);
  };
  std::int64_t p = 0;
  for (; p + kSteps <= g.k; p += kSteps) {
    V b[kPieces][kPiece<T>];
    load_columns<kPieces>(
        d,
        [&](std::int64_t lane) HWY_ATTR {
          const T* const row = g.b + columns[lane] * g.ldb + p;
          hwy::Prefetch(row + kAhead);
          return row;
        },
        b);
    MAKI_UNROLL for (int q = 0; q < kPieces; ++q) {
      MAKI_UNROLL for (int r = 0; r < kPiece<T>; ++r) step(p + q * kPiece<T> + r, b[q][r]);
    }
  }
  for (; p < g.k; ++p) step(p, columns.gather(g.b + p, g.ldb));
  MAKI_UNROLL for (int i = 0; i < kRows; ++i) finish_thin(g, columns, i, sum[i]);
}

template <int kRows, class T>
void gemm_thin_rows(const Gemm<T>& g, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kLanes = hn::MaxLanes(GemmVec<T>());
  const std::int64_t group = ceil_div(g.n, kLanes);
  for (std::int64_t t = begin; t < end; ++t) {
    if (g.n % kLanes == 0) {
      thin_tile<kRows>(g, ThinColumns<true, T>{g.n, group, t});
    } else {
      thin_tile<kRows>(g, ThinColumns<false, T>{g.n, group, t});
    }
  }
}

/// Columns [begin, end) of every group.
template <class T>
void gemm_thin_columns(const Gemm<T>& g, std::int64_t begin, std::int64_t end) {
  switch (g.m) {
    case 1:
      return gemm_thin_rows<1>(g, begin, end);
    case 2:
      return gemm_thin_rows<2>(g, begin, end);
    case 3:
      return gemm_thin_rows<3>(g, begin, end);
    case 4:
      return gemm_thin_rows<4>(g, begin, end);
    case 5:
      return gemm_thin_rows<5>(g, begin, end);
    case 6:
      return gemm_thin_rows<6>(g, begin, end);
    case 7:
      return gemm_thin_rows<7>(g, begin, end);
    default:
      return gemm_thin_rows<8>(g, begin, end);
  }
}

#endif

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_GEMM_THIN_INL_H_
