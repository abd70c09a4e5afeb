// Loads columns of a row-major matrix as vectors. Included once for every SIMD target.
#if defined(MAKI_KERNELS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_TRANSPOSE_INL_H_
#undef MAKI_KERNELS_TRANSPOSE_INL_H_
#else
#define MAKI_KERNELS_TRANSPOSE_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <hwy/highway.h>

#include "autograd/kernels/simd/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Elements in a 128-bit block, which is how many columns are transposed together; 1 where a vector is one element.
template <class T>
inline constexpr int kLanesPer128 = HWY_TARGET == HWY_SCALAR ? 1 : 16 / sizeof(T);

/// Transposes inside every 128-bit block: before, r[i] holds elements of row i; after, element i of every row.
template <class D, class V>
HWY_INLINE void transpose_blocks(D /*d*/, V (&/*r*/)[1]) {}
#if HWY_TARGET != HWY_SCALAR
template <class D, class V>
HWY_INLINE void transpose_blocks(D d, V (&r)[4]) {
  const hn::Repartition<double, D> pairs;
  const auto a = hn::BitCast(pairs, hn::InterleaveLower(d, r[0], r[1]));
  const auto b = hn::BitCast(pairs, hn::InterleaveLower(d, r[2], r[3]));
  const auto e = hn::BitCast(pairs, hn::InterleaveUpper(d, r[0], r[1]));
  const auto f = hn::BitCast(pairs, hn::InterleaveUpper(d, r[2], r[3]));
  r[0] = hn::BitCast(d, hn::InterleaveLower(pairs, a, b));
  r[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, a, b));
  r[2] = hn::BitCast(d, hn::InterleaveLower(pairs, e, f));
  r[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, e, f));
}
template <class D, class V>
HWY_INLINE void transpose_blocks(D d, V (&r)[2]) {
  const V a = r[0];
  r[0] = hn::InterleaveLower(d, a, r[1]);
  r[1] = hn::InterleaveUpper(d, a, r[1]);
}

#endif

/// Loads kPieces * kLanesPer128 columns of as many rows as a vector has lanes: column[q][c] = element q * kLanesPer128
/// + c of every row, where row(j) points to the first wanted element of row j. The 128-bit pieces of the rows are
/// arranged such that the transposition stays inside 128-bit blocks, which every target supports. All pieces of a row
/// are read together, because rows a power of two apart compete for the same few lines of the level-1 cache.
template <int kPieces, class D, class Row, class T = hn::TFromD<D>>
HWY_INLINE void load_columns(D d, const Row& row, hn::Vec<D> (&column)[kPieces][kLanesPer128<T>]) {
  constexpr int kBlocks = static_cast<int>(hn::MaxLanes(d)) / kLanesPer128<T>;
  MAKI_UNROLL for (int block = 0; block < kBlocks; ++block) {
    auto lanes_before = static_cast<std::size_t>(block * kLanesPer128<T>);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    // With a mask that it knows, GCC 12 chooses VINSERTF32X4 and then has no case for it ("internal compiler error").
    MAKI_PIN(lanes_before);
#endif
    const auto before = hn::FirstN(d, lanes_before);
    MAKI_UNROLL for (int i = 0; i < kLanesPer128<T>; ++i) {
      const T* const from = row(i + block * kLanesPer128<T>);
      MAKI_UNROLL for (int q = 0; q < kPieces; ++q) {
        const auto piece = hn::LoadDup128(d, from + q * kLanesPer128<T>);
        column[q][i] = block == 0 ? piece : hn::IfThenElse(before, column[q][i], piece);
      }
    }
  }
  MAKI_UNROLL for (int q = 0; q < kPieces; ++q) transpose_blocks(d, column[q]);
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_TRANSPOSE_INL_H_
