// Packs B into panels that are two vectors of columns wide, each dense and row-major, [k, panel]. Included once for
// every SIMD target.
#if defined(MAKI_KERNELS_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_GEMM_PACK_INL_H_
#undef MAKI_KERNELS_GEMM_PACK_INL_H_
#else
#define MAKI_KERNELS_GEMM_PACK_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <hwy/highway.h>

#include "autograd/kernels/gemm/tile-inl.h"
#include "autograd/kernels/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Rows [begin, k) of one panel, element by element, from `columns` columns of B, padded with zeros.
template <bool kTransposed, class T>
void pack_plain(std::int64_t begin, std::int64_t k, std::int64_t columns, const T* b, std::int64_t ldb, T* panel) {
  constexpr std::int64_t kPanelColumns = 2 * hn::MaxLanes(hn::ScalableTag<T>());
  for (std::int64_t p = begin; p < k; ++p) {
    T* row = panel + p * kPanelColumns;
    for (std::int64_t j = 0; j < columns; ++j) row[j] = kTransposed ? b[j * ldb + p] : b[p * ldb + j];
    std::fill(row + columns, row + kPanelColumns, T{0});
  }
}

/// Whole panels of a row-major B, row by row, so that B is read sequentially.
template <class T>
void pack_rows(std::int64_t k, std::int64_t panels, const T* b, std::int64_t ldb, T* out, std::int64_t panel_stride) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d), kPanelColumns = 2 * kLanes;
  for (std::int64_t p = 0; p < k; ++p) {
    const T* row = b + p * ldb;
    T* to = out + p * kPanelColumns;
    for (std::int64_t q = 0; q < panels; ++q, row += kPanelColumns, to += panel_stride) {
      const auto left = hn::LoadU(d, row);
      const auto right = hn::LoadU(d, row + kLanes);
      hn::Store(left, d, to);
      hn::Store(right, d, to + kLanes);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR

/// One vector of columns of a transposed B, prefetched 512 bytes ahead: when generation still packed its weights, this
/// took 29 ms per token instead of 30 to 35. k must be a multiple of kLanesPer128<T>.
template <class T>
void pack_transposed(std::int64_t k, const T* b, std::int64_t ldb, T* out) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d), kAheadElements = 512 / sizeof(T);
  for (std::int64_t p = 0; p < k; p += kLanesPer128<T>, out += kLanesPer128<T> * 2 * kLanes) {
    MAKI_UNROLL for (std::int64_t j = 0; j < kLanes; ++j) hwy::Prefetch(b + j * ldb + p + kAheadElements);
    hn::Vec<decltype(d)> column[1][kLanesPer128<T>];
    load_columns<1>(
        d, [&](std::int64_t j) HWY_ATTR { return b + j * ldb + p; }, column);
    MAKI_UNROLL for (int i = 0; i < kLanesPer128<T>; ++i) hn::Store(column[0][i], d, out + i * 2 * kLanes);
  }
}

#endif

/// Packs all of op(B) [k, n] into panels, panel_stride elements apart; the last one is padded with zeros.
/// `panels` must be aligned to a vector, and panel_stride a multiple of one.
template <class T>
HWY_INLINE void pack_panels(std::int64_t k, std::int64_t n, const T* b, std::int64_t ldb, bool transposed, T* panels,
                            std::int64_t panel_stride) {
  constexpr std::int64_t kLanes = hn::MaxLanes(hn::ScalableTag<T>()), kPanelColumns = 2 * kLanes;
  const std::int64_t whole = n / kPanelColumns, rest = n % kPanelColumns;
  if (transposed) {
#if HWY_TARGET == HWY_SCALAR
    for (std::int64_t q = 0; q < whole; ++q) {
      pack_plain<true>(0, k, kPanelColumns, b + q * kPanelColumns * ldb, ldb, panels + q * panel_stride);
    }
#else
    const std::int64_t blocks = k - k % kLanesPer128<T>;
    for (std::int64_t q = 0; q < whole; ++q) {
      T* panel = panels + q * panel_stride;
      const T* from = b + q * kPanelColumns * ldb;
      pack_transposed(blocks, from, ldb, panel);
      pack_transposed(blocks, from + kLanes * ldb, ldb, panel + kLanes);
      pack_plain<true>(blocks, k, kPanelColumns, from, ldb, panel);
    }
#endif
    if (rest != 0) pack_plain<true>(0, k, rest, b + whole * kPanelColumns * ldb, ldb, panels + whole * panel_stride);
  } else {
    pack_rows(k, whole, b, ldb, panels, panel_stride);
    if (rest != 0) pack_plain<false>(0, k, rest, b + whole * kPanelColumns, ldb, panels + whole * panel_stride);
  }
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_GEMM_PACK_INL_H_
