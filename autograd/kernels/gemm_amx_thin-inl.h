// Products of few rows with a B in columns, on AMX: the chains of gemm_amx-inl.h with the operands changed over. B's
// columns lie along the chain, so they are split and multiplied as they stream past, as if they were the rows of A.
// Included once for every SIMD target; empty where there is no AMX.
#if defined(MAKI_KERNELS_GEMM_AMX_THIN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_GEMM_AMX_THIN_INL_H_
#undef MAKI_KERNELS_GEMM_AMX_THIN_INL_H_
#else
#define MAKI_KERNELS_GEMM_AMX_THIN_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "autograd/kernels/amx.h"
#include "autograd/kernels/gemm.h"
#include "autograd/kernels/gemm_amx_pack-inl.h"
#include "autograd/kernels/gemm_thin-inl.h"

#if MAKI_HAVE_AMX
HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// A group of 16 columns of B as three tiles, looking 1 KB ahead in each column.
template <bool kWhole>
HWY_INLINE void amx_split_columns(const Gemm<float>& g, const ThinColumns<kWhole, float>& columns, std::int64_t p,
                                  std::uint16_t* pieces) {
  const AmxFloats d;
  for (std::int64_t lane = 0; lane < kAmxSide; ++lane) {
    const float* const b = g.b + columns[lane] * g.ldb;
    hwy::Prefetch(b + p + 256);
    hwy::Prefetch(b + p + 272);
    const bool whole = p + kAmxGroup <= g.k;
    const AmxVec x = whole ? hn::LoadU(d, b + p) : amx_load(b, p, g.k);
    const AmxVec y = whole ? hn::LoadU(d, b + p + kAmxSide) : amx_load(b, p + kAmxSide, g.k);
    amx_store_row(AmxSplit(x), AmxSplit(y), pieces + lane * kAmxGroup);
  }
}

/// The products of amx_small and amx_large, in their order. Tile 4 holds B, tile 5 the rows of A.
template <int kSum>
HWY_INLINE void amx_thin_small(const std::uint16_t* a, const std::uint16_t* b) {
  amx::load<5>(a + kAmxHigh, 64);
  amx::load<4>(b + kAmxLow, 64);
  amx::multiply<kSum, 4, 5>();
  amx::load<4>(b + kAmxMiddle, 64);
  amx::multiply<kSum, 4, 5>();
  amx::load<5>(a + kAmxMiddle, 64);
  amx::multiply<kSum, 4, 5>();
  amx::load<4>(b + kAmxHigh, 64);
  amx::multiply<kSum, 4, 5>();
  amx::load<5>(a + kAmxLow, 64);
  amx::multiply<kSum, 4, 5>();
}
template <int kSum>
HWY_INLINE void amx_thin_large(const std::uint16_t* a, const std::uint16_t* b) {
  amx::load<5>(a + kAmxHigh, 64);
  amx::load<4>(b + kAmxHigh, 64);
  amx::multiply<kSum, 4, 5>();
}

/// Two steps at once: the columns of one alone would wait for its chain.
template <bool kWhole>
HWY_NOINLINE void amx_thin_tile(const Gemm<float>& g, const std::uint16_t* a,
                                const ThinColumns<kWhole, float> (&columns)[2]) {
  HWY_ALIGN float sums[2][kAmxSide * kAmxSide];  // [column, row]
  HWY_ALIGN std::uint16_t b[kAmxDepth / kAmxGroup][2][kAmxPieces];
  const AmxFloats d;
  for (int step = 0; step < 2; ++step) {
    std::fill_n(sums[step], kAmxSide * kAmxSide, 0.0F);
    for (std::int64_t lane = 0; lane < kAmxSide; ++lane) {
      const std::int64_t j = columns[step][lane];
      for (std::int64_t i = 0; i < g.m; ++i) {
        sums[step][lane * kAmxSide + i] =
            (g.beta == 1 ? g.c[i * g.ldc + j] : 0.0F) + (g.bias != nullptr ? g.bias[j] : 0.0F);
      }
    }
  }
  amx::load<0>(sums[0], 64);
  amx::load<1>(sums[1], 64);
  for (std::int64_t p = 0; p < g.k; p += kAmxDepth) {
    const std::int64_t groups = ceil_div(std::min(kAmxDepth, g.k - p), kAmxGroup);
    for (std::int64_t q = 0; q < groups; ++q) {
      amx_split_columns(g, columns[0], p + q * kAmxGroup, b[q][0]);
      amx_split_columns(g, columns[1], p + q * kAmxGroup, b[q][1]);
      amx_thin_small<0>(a + q * kAmxPanelGroup, b[q][0]);
      amx_thin_small<1>(a + q * kAmxPanelGroup, b[q][1]);
    }
    for (std::int64_t q = 0; q < groups; ++q) {
      amx_thin_large<0>(a + q * kAmxPanelGroup, b[q][0]);
      amx_thin_large<1>(a + q * kAmxPanelGroup, b[q][1]);
    }
    a += groups * kAmxPanelGroup;
  }
  amx::store<0>(sums[0], 64);
  amx::store<1>(sums[1], 64);
  Gemm<float> rest = g;
  rest.bias = nullptr;
  for (int step = 0; step < 2; ++step) {
    for (std::int64_t i = 0; i < g.m; ++i) {
      HWY_ALIGN float x[kAmxSide];
      for (std::int64_t lane = 0; lane < kAmxSide; ++lane) x[lane] = sums[step][lane * kAmxSide + i];
      finish_thin(rest, columns[step], i, hn::Load(d, x));
    }
  }
}

inline void amx_pack_thin(const Gemm<float>& g, std::uint16_t* a) {
  amx_pack_columns_transposed(g.k, g.m, g.a, g.lda, a, 0);
}

/// Steps [begin, end), as in gemm_thin_rows.
inline void amx_thin(const Gemm<float>& g, const std::uint16_t* a, std::int64_t begin, std::int64_t end) {
  const ThinSteps<float> steps(g);
  for (std::int64_t t = begin; t < end; t += 2) {
    const std::int64_t second = std::min(t + 1, end - 1);  // of one step alone: made twice, the same
    if (steps.whole) {
      amx_thin_tile<true>(g, a, {steps.template columns<true>(t), steps.template columns<true>(second)});
    } else {
      amx_thin_tile<false>(g, a, {steps.template columns<false>(t), steps.template columns<false>(second)});
    }
  }
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // MAKI_HAVE_AMX

#endif  // MAKI_KERNELS_GEMM_AMX_THIN_INL_H_
