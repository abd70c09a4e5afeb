// The register tile of GEMM. Included once for every SIMD target.
#if defined(MAKI_KERNELS_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_GEMM_TILE_INL_H_
#undef MAKI_KERNELS_GEMM_TILE_INL_H_
#else
#define MAKI_KERNELS_GEMM_TILE_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include <utility>

#include "autograd/kernels/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of the tile, two vectors wide. AVX3 and better targets, which have lower numbers, have 32 registers: 28 sums, 2 of
// B, 1 of A. AVX2 has 16: 12 + 2 + 1. Below, a product needs a register of its own.
#if HWY_TARGET <= HWY_AVX3
inline constexpr int kTileRows = 14;
#elif HWY_TARGET == HWY_AVX2
inline constexpr int kTileRows = 6;
#elif HWY_TARGET == HWY_NEON
inline constexpr int kTileRows = 12;
#else
inline constexpr int kTileRows = 4;
#endif

template <class T>
using GemmVec = hn::ScalableTag<T>;

/// A packed tile of A is [k, this]: whole vectors, so that packing stores lines and k can be shared out.
template <class T>
inline constexpr std::int64_t kPackedRows =
    (kTileRows + hn::MaxLanes(GemmVec<T>()) - 1) / hn::MaxLanes(GemmVec<T>()) * hn::MaxLanes(GemmVec<T>());

/// C [rows, vectors] = (accumulate ? C : 0) + A [rows, k] B [k, vectors] (+ bias), the product being one chain. Row p
/// of B is at b + p * ldb. A element (i, p) is a[i * lda + p], or a[p * lda + i] where A lies in columns. What is read
/// in place can be packed on the way, in the shadow of the arithmetic: a_copy (only of columns, [k, kPackedRows]) and
/// b_copy ([k, a panel]), or null.
template <class T>
struct GemmTileCall {
  std::int64_t k;
  const T* a;
  std::ptrdiff_t lda;
  T* a_copy;
  const T* b;
  std::ptrdiff_t ldb;
  T* b_copy;
  T* c;
  std::ptrdiff_t ldc;
  bool accumulate;
  const T* bias;
};

/// Where the next element of each row of A stands. Rows in groups of five: one base each, and at most four strides that
/// all groups share, fit the integer registers, where fourteen offsets of their own were loaded from the stack on ports
/// that the arithmetic needs: three more of a hundred parts of the peak, at every shape.
template <int kRows, bool kColumnsA, class T>
class RowPointers {
 public:
  HWY_INLINE RowPointers(const T* a, std::ptrdiff_t lda) : stride_(lda) {
    MAKI_UNROLL for (int g = 0; g < kGroups; ++g) base_[g] = a + 5 * g * lda;
  }
  HWY_INLINE T at(int i) const { return kColumnsA ? base_[0][i] : base_[i / 5][i % 5 * stride_]; }
  HWY_INLINE void next() { MAKI_UNROLL for (int g = 0; g < kGroups; ++g) base_[g] += kColumnsA ? stride_ : 1; }
  HWY_INLINE const T* first() const { return base_[0]; }

 private:
  static constexpr int kGroups = kColumnsA ? 1 : (kRows + 4) / 5;
  const T* base_[kGroups];
  std::ptrdiff_t stride_;
};

/// One step of every chain of the tile.
template <int kRows, int kVecs, class A, class V>
HWY_INLINE void gemm_step(const A& a, const V (&b)[kVecs], V (&sum)[kRows][kVecs]) {
  const hn::DFromV<V> d;
  MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
    const V x = hn::Set(d, a.at(i));
    MAKI_UNROLL for (int v = 0; v < kVecs; ++v) sum[i][v] = hn::MulAdd(x, b[v], sum[i][v]);
  }
}

/// All steps. Prefetching 8 ahead brings 1 to 2 % (B and packed A come from the level-2 cache).
template <int kRows, int kVecs, bool kColumnsA, class T, class V>
HWY_INLINE void gemm_chain(const GemmTileCall<T>& call, V (&sum)[kRows][kVecs]) {
  const GemmVec<T> d;
  constexpr std::ptrdiff_t kLanes = hn::MaxLanes(d), kLine = 64 / sizeof(T), kAhead = 8;
  const std::ptrdiff_t lda = call.lda, ldb = call.ldb;
  const T* HWY_RESTRICT b = call.b;
  RowPointers<kRows, kColumnsA, T> a(call.a, lda);
  T *HWY_RESTRICT a_copy = call.a_copy, *HWY_RESTRICT b_copy = call.b_copy;
  for (std::int64_t p = 0; p < call.k; ++p) {
    MAKI_UNROLL for (std::ptrdiff_t line = 0; line < kVecs * kLanes; line += kLine)
        hwy::Prefetch(b + kAhead * ldb + line);
    if (kColumnsA) hwy::Prefetch(a.first() + kAhead * lda);
    V bv[kVecs];
    MAKI_UNROLL for (int v = 0; v < kVecs; ++v) bv[v] = hn::LoadU(d, b + v * kLanes);
    if (b_copy != nullptr) {
      MAKI_UNROLL for (int v = 0; v < kVecs; ++v) hn::Store(bv[v], d, b_copy + v * kLanes);
      b_copy += 2 * kLanes;
    }
    if (kColumnsA && a_copy != nullptr) {
      std::memcpy(a_copy, a.first(), kRows * sizeof(T));  // of constant length: moves
      a_copy += kPackedRows<T>;
    }
    gemm_step<kRows, kVecs>(a, bv, sum);
    a.next();
    b += ldb;
  }
}

template <int kRows, int kVecs, bool kColumnsA, class T>
HWY_NOINLINE void gemm_tile(const GemmTileCall<T>& call) {
  const GemmVec<T> d;
  using V = hn::Vec<GemmVec<T>>;
  constexpr std::ptrdiff_t kLanes = hn::MaxLanes(d);
  V sum[kRows][kVecs];
  MAKI_UNROLL for (int i = 0; i < kRows; ++i) {  // prefetched, C does not wait: 4096 x 1536 from 83 to 91 % of peak
    hwy::Prefetch(call.c + i * call.ldc);
    hwy::Prefetch(call.c + i * call.ldc + kVecs * kLanes - 1);
    MAKI_UNROLL for (int v = 0; v < kVecs; ++v) sum[i][v] = hn::Zero(d);
  }
  gemm_chain<kRows, kVecs, kColumnsA>(call, sum);
  asm volatile("" : : : "memory");  // `call` is read again: kept in registers, C would push strides of A out (4 %)
  T* HWY_RESTRICT const c = call.c;
  if (call.accumulate) {
    MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
      MAKI_UNROLL for (int v = 0; v < kVecs; ++v) {
        sum[i][v] = hn::Add(hn::LoadU(d, c + i * call.ldc + v * kLanes), sum[i][v]);
      }
    }
  }
  if (call.bias != nullptr) {
    MAKI_UNROLL for (int v = 0; v < kVecs; ++v) {
      const V x = hn::LoadU(d, call.bias + v * kLanes);
      MAKI_UNROLL for (int i = 0; i < kRows; ++i) sum[i][v] = hn::Add(sum[i][v], x);
    }
  }
  MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
    MAKI_UNROLL for (int v = 0; v < kVecs; ++v) hn::StoreU(sum[i][v], d, c + i * call.ldc + v * kLanes);
  }
}

template <class T>
using GemmTileFunction = void (*)(const GemmTileCall<T>&);

/// The tile of 1 … kTileRows rows.
template <int kVecs, bool kColumnsA, class T, int... kRows>
GemmTileFunction<T> gemm_tile_of(std::int64_t rows, std::integer_sequence<int, kRows...>) {
  static constexpr GemmTileFunction<T> kTable[] = {gemm_tile<kRows + 1, kVecs, kColumnsA, T>...};
  return kTable[rows - 1];
}

template <class T>
GemmTileFunction<T> gemm_tile_of(std::int64_t rows, std::int64_t vecs, bool columns_a) {
  constexpr auto kAll = std::make_integer_sequence<int, kTileRows>();
  if (columns_a) return vecs == 1 ? gemm_tile_of<1, true, T>(rows, kAll) : gemm_tile_of<2, true, T>(rows, kAll);
  return vecs == 1 ? gemm_tile_of<1, false, T>(rows, kAll) : gemm_tile_of<2, false, T>(rows, kAll);
}

/// A tile that reaches over the right edge: computed in a buffer, so that nothing beyond column n is touched.
template <class T>
HWY_NOINLINE void gemm_edge(GemmTileFunction<T> tile, std::int64_t rows, std::int64_t columns, GemmTileCall<T> call) {
  constexpr std::ptrdiff_t kPanel = 2 * hn::MaxLanes(GemmVec<T>());
  HWY_ALIGN T buffer[kTileRows * kPanel];
  HWY_ALIGN T wide_bias[kPanel] = {};
  T* const c = call.c;
  const std::ptrdiff_t ldc = call.ldc;
  if (call.accumulate) {
    for (std::int64_t i = 0; i < rows; ++i) std::copy_n(c + i * ldc, columns, buffer + i * kPanel);
  }
  if (call.bias != nullptr) {
    std::copy_n(call.bias, columns, wide_bias);
    call.bias = wide_bias;
  }
  call.c = buffer;
  call.ldc = kPanel;
  tile(call);
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(buffer + i * kPanel, columns, c + i * ldc);
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_GEMM_TILE_INL_H_
