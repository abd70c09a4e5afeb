// Products of operands rounded to bfloat16 on CPUs that multiply pairs of bfloat16 numbers and add them to float32 sums
// (AVX512_BF16). Included once for every SIMD target; empty unless it is an x86-64 target with AVX-512. Whether the CPU
// has the instructions is asked at run time: bf16_unit().
#if defined(MAKI_KERNELS_GEMM_BF16_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_GEMM_BF16_PAIRS_INL_H_
#undef MAKI_KERNELS_GEMM_BF16_PAIRS_INL_H_
#else
#define MAKI_KERNELS_GEMM_BF16_PAIRS_INL_H_
#endif

#include <cstdint>
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "autograd/kernels/gemm/bf16_block-inl.h"
#include "autograd/kernels/gemm/bf16_pack-inl.h"
#include "autograd/kernels/gemm/bf16_tile-inl.h"
#include "autograd/kernels/simd/unroll.h"

#if MAKI_HAVE_BF16
HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// sum += the products of the upper halves of the pairs, then sum += those of the lower halves, rounded each time
/// (Intel, VDPBF16PS). So for a chain of even steps the upper half is step p and the lower one step p + 2.
HWY_INLINE void bf16_add_products(Bf16Vec& sum, hn::Vec<Bf16Bits> a, hn::Vec<Bf16Bits> b) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
}

/// Rows of a register tile: its 8 sums, 8 chains of even steps and 8 of odd steps, with 4 vectors of B and one or two
/// of A, fit in the 32 vector registers. Tiles of 5 and 6 rows, with their sums in memory, were no faster.
inline constexpr int kBf16PairRows = 4;

/// One group of steps: sum += the chains of the even and of the odd steps.
template <int kRows, int kVecs>
HWY_INLINE void bf16_pairs_group(const std::uint16_t* a, const std::uint16_t* b, Bf16Vec (&sum)[kRows][kVecs]) {
  const Bf16Floats d;
  const Bf16Bits bits;
  const hn::Repartition<std::uint32_t, Bf16Floats> pairs;
  Bf16Vec even[kRows][kVecs], odd[kRows][kVecs];
  MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
    MAKI_UNROLL for (int v = 0; v < kVecs; ++v) even[i][v] = odd[i][v] = hn::Zero(d);
  }
  for (std::int64_t p = 0; p < kBf16Depth; p += 4, a += 4, b += 4 * kBf16PanelWidth) {
    hn::Vec<Bf16Bits> b_even[kVecs], b_odd[kVecs];
    MAKI_UNROLL for (int v = 0; v < kVecs; ++v) {
      hwy::Prefetch(b + kBf16GroupElements + 32 * v);
      hwy::Prefetch(b + kBf16GroupElements + Bf16PairOrder::kOddOffset + 32 * v);
      b_even[v] = hn::Load(bits, b + 32 * v);
      b_odd[v] = hn::Load(bits, b + Bf16PairOrder::kOddOffset + 32 * v);
    }
    MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
      const auto* const row = reinterpret_cast<const std::uint32_t*>(a + i * kBf16Depth);
      const auto a_even = hn::BitCast(bits, hn::Set(pairs, row[0])), a_odd = hn::BitCast(bits, hn::Set(pairs, row[1]));
      MAKI_UNROLL for (int v = 0; v < kVecs; ++v) bf16_add_products(even[i][v], a_even, b_even[v]);
      MAKI_UNROLL for (int v = 0; v < kVecs; ++v) bf16_add_products(odd[i][v], a_odd, b_odd[v]);
    }
  }
  MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
    MAKI_UNROLL for (int v = 0; v < kVecs; ++v) { sum[i][v] = hn::Add(sum[i][v], hn::Add(even[i][v], odd[i][v])); }
  }
}

/// GEMM on pairs of bfloat16 numbers (bf16_block()).
struct Bf16Pairs : Bf16Packing<Bf16PairOrder> {
  static constexpr int kTileRows = kBf16PairRows, kTileColumns = kBf16PanelWidth, kRowsTogether = 1;
  struct ThreadScope {};

  template <class D, class V, int kRows, int kVecs>
  static HWY_INLINE void add_group(D /*d*/, const Element* a, const Element* b, V (&sum)[kRows][kVecs]) {
    bf16_pairs_group<kRows, kVecs>(a, b, sum);
  }
  static void tile(std::int64_t rows, const Bf16TileCall<Element>& call) { bf16_tile_of<Bf16Pairs>(rows, call); }
};

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // MAKI_HAVE_BF16

#endif  // MAKI_KERNELS_GEMM_BF16_PAIRS_INL_H_
