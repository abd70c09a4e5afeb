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

#include "autograd/kernels/simd/lanes-inl.h"
#include "autograd/kernels/simd/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What products adapt to a vector target. kGemmTileRows are the rows of the register tile, which is two vectors wide.
// AVX3 has 32 vector registers: 28 accumulators, 2 for B, 1 for A. AVX2 has 16: 12 + 2 + 1. Targets without fused
// multiply-add need one more register for the product. kThinPieces are the pieces of 16 bytes that a product which
// streams B (thin-inl.h) reads at a time: a cache line if there are enough registers. kMaxThinRows are the most rows of
// such a product: as many as leave its sums in registers. On AVX3, 13 × 384 × 384 takes 24 µs this way, and 48 µs with
// B packed; on AVX2 with one thread, packing is 1.3 to 1.4 times as fast for 12 rows, as fast for 9, and takes 1.3
// times as long for 8. Only AVX3 and AVX2 have measurements on record.
#if HWY_TARGET <= HWY_AVX3  // in Highway, lower numbers are better targets
inline constexpr int kGemmTileRows = 14, kThinPieces = 4, kMaxThinRows = 14;  // 28 sums in 32 registers; a cache line
#elif HWY_TARGET == HWY_AVX2
inline constexpr int kGemmTileRows = 6, kThinPieces = 2, kMaxThinRows = 8;  // 12 sums in 16 registers
#elif HWY_ARCH_ARM_A64
inline constexpr int kGemmTileRows = 10, kThinPieces = 4, kMaxThinRows = 11;  // 20 sums, 8 of B, 2 of A in 32 registers
#elif HWY_TARGET == HWY_SCALAR
inline constexpr int kGemmTileRows = 4, kThinPieces = 2, kMaxThinRows = 0;
#else
inline constexpr int kGemmTileRows = 4, kThinPieces = 2, kMaxThinRows = 8;  // 8 sums in 16 registers
#endif

template <class T>
using GemmVec = hn::ScalableTag<T>;

/// A packed tile of A is [k, kPackedRows]: kGemmTileRows rounded up to whole vectors, so that every step starts
/// aligned.
template <class T>
inline constexpr std::int64_t kPackedRows =
    (kGemmTileRows + hn::MaxLanes(GemmVec<T>()) - 1) / hn::MaxLanes(GemmVec<T>()) * hn::MaxLanes(GemmVec<T>());

/// One register tile: C [rows, vectors] = (accumulate ? C : 0) + A [rows, k] B [k, vectors] (+ bias), with A B summed
/// as one chain. Row p of B is at b + p * ldb. Element (i, p) of A is a[i * lda + p], or a[p * lda + i] if A is
/// transposed. An operand that is read in place can be packed at the same time, hidden behind the arithmetic: a
/// transposed A into a_copy [k, kPackedRows], B into b_copy [k, panel]; null if it is not to be packed.
/// A row of b_copy takes a whole panel, even if the tile is one vector wide. The bias is a vector per vector of C, or
/// null.
template <class T>
struct GemmTileCall {
  std::int64_t k;
  const T* a;
  std::ptrdiff_t lda;
  T* a_copy;
  const T* b;
  std::ptrdiff_t ldb;
  bool b_is_packed;
  T* b_copy;
  T* c;
  std::ptrdiff_t ldc;
  bool accumulate;
  const T* bias;
};

/// The addresses of the next element of each row of A. The rows are in groups of three or five: one base pointer per
/// group and at most four strides, which all groups share, fit in the integer registers. Fourteen separate offsets were
/// loaded from the stack, on ports that the arithmetic needs; avoiding that gained 3 percentage points of the peak at
/// every shape.
template <int kRows, bool kColumnsA, class T>
class RowPointers {
 public:
  HWY_INLINE RowPointers(const T* a, std::ptrdiff_t lda) : stride_(lda) {
    MAKI_UNROLL for (int g = 0; g < kRowGroups; ++g) base_[g] = a + kRowsPerBasePointer * g * lda;
  }
  /// The address of the element of row i, `steps` steps on: 0 if A is transposed and read in place.
  HWY_INLINE const T* at(int i, int steps) const {
    return kColumnsA ? base_[0] + (steps * kPackedRows<T> + i)
                     : base_[i / kRowsPerBasePointer] + (i % kRowsPerBasePointer * stride_ + steps);
  }
  HWY_INLINE void next(std::ptrdiff_t steps = 1) {
    MAKI_UNROLL for (int g = 0; g < kRowGroups; ++g) base_[g] += kColumnsA ? steps * stride_ : steps;
  }
  HWY_INLINE void pin() {
    MAKI_UNROLL for (int g = 0; g < kRowGroups; ++g) {
      const T* base = base_[g];  // a variable of its own, so that the array need not be in memory
      MAKI_PIN(base);
      base_[g] = base;
    }
  }
  HWY_INLINE const T* first() const { return base_[0]; }

 private:
  static constexpr int kRowsPerBasePointer = HWY_ARCH_ARM_A64 ? 1 : kGemmTileRows > 6 ? 5 : 3;
  static constexpr int kRowGroups = kColumnsA ? 1 : (kRows + kRowsPerBasePointer - 1) / kRowsPerBasePointer;
  const T* base_[kRowGroups];
  std::ptrdiff_t stride_;
};

/// One step of every chain of the tile: sum[i][v] += a(i) · b[v], with the elements of A `steps` steps on.
template <int kRows, int kVecs, class A, class V>
HWY_INLINE void gemm_step(const A& a, int steps, const V (&b)[kVecs], V (&sum)[kRows][kVecs]) {
  const hn::DFromV<V> d;
  MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
    const V x = hn::Set(d, *a.at(i, steps));
    MAKI_UNROLL for (int v = 0; v < kVecs; ++v) sum[i][v] = hn::MulAdd(x, b[v], sum[i][v]);
  }
}

/// One round of a chain whose A is packed or row-major: as gemm_step(), step by step. The rows of B are ldb apart, or
/// those of a packed panel with kPackedB; else B is prefetched 32 steps ahead, and copied to b_copy unless that is
/// null.
template <bool kPackedB, int kRows, int kVecs, bool kColumnsA, class T, class V>
HWY_INLINE void gemm_round(const RowPointers<kRows, kColumnsA, T>& a, const T* HWY_RESTRICT b, std::ptrdiff_t ldb,
                           T* HWY_RESTRICT b_copy, V (&sum)[kRows][kVecs]) {
  const GemmVec<T> d;
  constexpr std::ptrdiff_t kLanes = hn::MaxLanes(d);
  constexpr int kSteps = MAKI_ROUND_STEPS(T);
  V bv[kSteps][kVecs];
  const auto load = [&](int step) HWY_ATTR {
    MAKI_UNROLL for (int v = 0; v < kVecs; ++v) {
      bv[step][v] = kPackedB ? hn::Load(d, b + (2 * step + v) * kLanes) : hn::LoadU(d, b + step * ldb + v * kLanes);
    }
    if (!kPackedB) hwy::Prefetch(b + (step + 32) * ldb);
  };
  if constexpr (kMultipliesByLane && !kColumnsA) {
    MAKI_UNROLL for (int step = 0; step < kSteps; ++step) load(step);
    add_steps_by_lane([&](int i) HWY_ATTR { return hn::LoadU(d, a.at(i, 0)); }, bv, sum);
  } else {
    MAKI_UNROLL for (int step = 0; step < kSteps; ++step) {
      load(step);
      if constexpr (kMultipliesByLane) {
        add_step_by_lane(a.at(0, step), bv[step], sum);
      } else {
        gemm_step(a, step, bv[step], sum);
      }
    }
  }
  if (kPackedB || b_copy == nullptr) return;
  MAKI_UNROLL for (int step = 0; step < kSteps; ++step) {
    MAKI_UNROLL for (int v = 0; v < kVecs; ++v) hn::Store(bv[step][v], d, b_copy + (2 * step + v) * kLanes);
  }
}

/// The first steps of such a chain: as many as whole rounds cover. Advances the pointers past them and returns their
/// number. Packed B is not prefetched: from the level-2 cache Zen 3 reads it in time by itself, and this form reaches
/// 89 GFLOP/s instead of 85.
template <bool kPackedB, int kRows, int kVecs, bool kColumnsA, class T, class V>
HWY_INLINE std::int64_t gemm_rounds(std::int64_t k, RowPointers<kRows, kColumnsA, T>& a, const T* HWY_RESTRICT& b,
                                    std::ptrdiff_t ldb, T* HWY_RESTRICT& b_copy, V (&sum)[kRows][kVecs]) {
  constexpr std::ptrdiff_t kPanelColumns = 2 * static_cast<std::ptrdiff_t>(hn::MaxLanes(GemmVec<T>()));
  constexpr int kSteps = MAKI_ROUND_STEPS(T);
  const std::int64_t steps = k - k % kSteps;
  RowPointers<kRows, kColumnsA, T> rows = a;  // a copy, so that they stay in registers
  for (std::int64_t p = 0; p < steps; p += kSteps) {
    gemm_round<kPackedB>(rows, b, ldb, b_copy, sum);
    rows.next(kSteps);
    rows.pin();
    b += kSteps * (kPackedB ? kPanelColumns : ldb);
    if (!kPackedB && b_copy != nullptr) b_copy += kSteps * kPanelColumns;
  }
  a = rows;
  return steps;
}

/// All steps: sum [kRows, kVecs] += A B. Prefetching 8 steps ahead gains 1 to 2 %, because B and packed A come from the
/// level-2 cache; B that is read in place may come from memory and is prefetched 32 steps ahead.
template <int kRows, int kVecs, bool kColumnsA, class T, class V>
HWY_INLINE void gemm_chain(const GemmTileCall<T>& call, V (&sum)[kRows][kVecs]) {
  const GemmVec<T> d;
  constexpr std::ptrdiff_t kLanes = hn::MaxLanes(d), kLineElements = 64 / sizeof(T), kAheadSteps = 8;
  const std::ptrdiff_t lda = call.lda, ldb = call.ldb;
  const T* HWY_RESTRICT b = call.b;
  RowPointers<kRows, kColumnsA, T> a(call.a, lda);
  T *HWY_RESTRICT a_copy = call.a_copy, *HWY_RESTRICT b_copy = call.b_copy;
  const std::ptrdiff_t b_ahead = (b_copy != nullptr ? 4 : 1) * kAheadSteps * ldb;
  std::int64_t p = 0;
  const bool by_rounds = !kColumnsA || (a_copy == nullptr && lda == kPackedRows<T>);
  if (MAKI_ROUND_STEPS(T) > 1 && call.b_is_packed && by_rounds) p = gemm_rounds<true>(call.k, a, b, ldb, b_copy, sum);
  if constexpr (kMultipliesByLane) {
    if (!call.b_is_packed && by_rounds) p = gemm_rounds<false>(call.k, a, b, ldb, b_copy, sum);
  }
  for (; p < call.k; ++p) {
    MAKI_UNROLL for (std::ptrdiff_t line = 0; line < kVecs * kLanes; line += kLineElements)
        hwy::Prefetch(b + b_ahead + line);
    if (kColumnsA) hwy::Prefetch(a.first() + kAheadSteps * lda);
    V bv[kVecs];
    MAKI_UNROLL for (int v = 0; v < kVecs; ++v) bv[v] = hn::LoadU(d, b + v * kLanes);
    if (b_copy != nullptr) {
      MAKI_UNROLL for (int v = 0; v < kVecs; ++v) hn::Store(bv[v], d, b_copy + v * kLanes);
      b_copy += 2 * kLanes;
    }
    if (kColumnsA && a_copy != nullptr) {
      std::memcpy(a_copy, a.first(), kRows * sizeof(T));  // constant length, so the compiler emits a few moves
      a_copy += kPackedRows<T>;
    }
    gemm_step(a, 0, bv, sum);
    a.next();
    b += ldb;
  }
}

/// Computes one tile of kRows rows and kVecs vectors. C is prefetched, so that the tile need not wait for it at the
/// end: this raised a product with a C of 4096 × 1536 from 83 to 91 % of the peak.
template <int kRows, int kVecs, bool kColumnsA, class T>
HWY_NOINLINE void gemm_tile(const GemmTileCall<T>& call) {
  const GemmVec<T> d;
  using V = hn::Vec<GemmVec<T>>;
  constexpr std::ptrdiff_t kLanes = hn::MaxLanes(d);
  V sum[kRows][kVecs];
  MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
    hwy::Prefetch(call.c + i * call.ldc);
    hwy::Prefetch(call.c + i * call.ldc + kVecs * kLanes - 1);
    MAKI_UNROLL for (int v = 0; v < kVecs; ++v) sum[i][v] = hn::Zero(d);
  }
  gemm_chain<kRows, kVecs, kColumnsA>(call, sum);
  // Makes the compiler read `call` again here. Otherwise it keeps the fields for C in registers during the chain and
  // spills strides of A, which costs 4 %.
  asm volatile("" : : : "memory");
  T* HWY_RESTRICT const c = call.c;
  const std::ptrdiff_t ldc = call.ldc;
  if (call.accumulate) {
    MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
      MAKI_UNROLL for (int v = 0; v < kVecs; ++v) {
        sum[i][v] = hn::Add(hn::LoadU(d, c + i * ldc + v * kLanes), sum[i][v]);
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

/// The tile function for 1 … kGemmTileRows rows.
template <int kVecs, bool kColumnsA, class T, int... kRows>
GemmTileFunction<T> gemm_tile_of(std::int64_t rows, std::integer_sequence<int, kRows...>) {
  static constexpr GemmTileFunction<T> kTable[] = {gemm_tile<kRows + 1, kVecs, kColumnsA, T>...};
  return kTable[rows - 1];
}

template <class T>
GemmTileFunction<T> gemm_tile_of(std::int64_t rows, std::int64_t vecs, bool columns_a) {
  constexpr auto kAll = std::make_integer_sequence<int, kGemmTileRows>();
  if (columns_a) return vecs == 1 ? gemm_tile_of<1, true, T>(rows, kAll) : gemm_tile_of<2, true, T>(rows, kAll);
  return vecs == 1 ? gemm_tile_of<1, false, T>(rows, kAll) : gemm_tile_of<2, false, T>(rows, kAll);
}

/// A tile that extends beyond the last column of C, of which it has `columns`: computed in a buffer, so that nothing
/// beyond C is read or written.
template <class T>
HWY_NOINLINE void gemm_edge(GemmTileFunction<T> tile, std::int64_t rows, std::int64_t columns, GemmTileCall<T> call) {
  constexpr std::ptrdiff_t kPanelColumns = 2 * hn::MaxLanes(GemmVec<T>());
  HWY_ALIGN T buffer[kGemmTileRows * kPanelColumns];
  HWY_ALIGN T wide_bias[kPanelColumns] = {};
  T* const c = call.c;
  const std::ptrdiff_t ldc = call.ldc;
  if (call.accumulate) {
    for (std::int64_t i = 0; i < rows; ++i) std::copy_n(c + i * ldc, columns, buffer + i * kPanelColumns);
  }
  if (call.bias != nullptr) {
    std::copy_n(call.bias, columns, wide_bias);
    call.bias = wide_bias;
  }
  call.c = buffer;
  call.ldc = kPanelColumns;
  tile(call);
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(buffer + i * kPanelColumns, columns, c + i * ldc);
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_GEMM_TILE_INL_H_
