// Products of operands rounded to bfloat16 on ARM64 CPUs with BFMMLA (FEAT_BF16), which multiplies 2 × 4 by 4 × 2
// numbers and adds the product to 2 × 2 sums of float32. Included once for every SIMD target; empty unless it is NEON.
// Whether the CPU has the instruction is asked at run time: bf16_unit().
#if defined(MAKI_KERNELS_GEMM_BF16_MATRICES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_GEMM_BF16_MATRICES_INL_H_
#undef MAKI_KERNELS_GEMM_BF16_MATRICES_INL_H_
#else
#define MAKI_KERNELS_GEMM_BF16_MATRICES_INL_H_
#endif

#include <cstdint>
#include <hwy/highway.h>

#include "autograd/kernels/gemm/bf16_block-inl.h"
#include "autograd/kernels/gemm/bf16_floats-inl.h"
#include "autograd/kernels/simd/partial-inl.h"
#include "autograd/kernels/simd/round-inl.h"
#include "autograd/kernels/simd/transpose-inl.h"
#include "autograd/kernels/simd/unroll.h"

#if HWY_ARCH_ARM_A64
HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The bits of 2 × 4 bfloat16 numbers: four steps of two rows of A, or of two columns of B.
using Bf16Quads = hn::Repartition<std::uint16_t, RoundedFloats>;

/// sum [2, 2] += a [2, 4] b [2, 4]ᵀ: for each element, the sum of the products of the first two steps, then that of the
/// other two. Every sum is rounded to odd, and subnormal numbers are 0. (Arm Architecture Reference Manual for
/// A-profile, BFMMLA; a product of two numbers is exact.)
HWY_INLINE void bf16_add_products(RoundedVec& sum, hn::Vec<Bf16Quads> a, hn::Vec<Bf16Quads> b) {
  auto raw = sum.raw;
  asm(".arch_extension bf16\n\tbfmmla %0.4s, %1.8h, %2.8h" : "+w"(raw) : "w"(a.raw), "w"(b.raw));
  sum = RoundedVec(raw);
}

/// Panels of A and B are alike: in a group, the 32 steps of two rows of A (of two columns of B) are together, four
/// steps of the first beside the same steps of the second. The element of row or column i, from step p on, a multiple
/// of 4.
HWY_INLINE std::uint16_t* bf16_quad(std::uint16_t* panels, std::int64_t panel_stride, std::int64_t i, std::int64_t p) {
  constexpr std::int64_t kPair = 2 * kBf16Depth;
  return panels + i / kBf16PanelWidth * panel_stride + p / kBf16Depth * kBf16GroupElements +
         i % kBf16PanelWidth / 2 * kPair + p % kBf16Depth * 2 + i % 2 * 4;
}
HWY_INLINE void bf16_store_quad(RoundedVec rounded, std::uint16_t* to) {
  hn::StoreU(upper_halves(rounded), RoundedHalves(), to);
}

/// Packs n rows of k steps, element (i, p) at x[i * ld + p].
template <class X>
void bf16_pack_quads(std::int64_t n, std::int64_t k, const X* x, std::int64_t ld, std::uint16_t* panels,
                     std::int64_t panel_stride) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t p = 0; p < k; p += kBf16Depth) {
      for (std::int64_t s = p; s < p + kBf16Depth; s += kRoundedLanes) {
        bf16_store_quad(rounded_load(x + i * ld + s, k - s), bf16_quad(panels, panel_stride, i, s));
      }
    }
  }
}
/// Packs n rows of k steps, element (i, p) at x[p * ld + i].
inline void bf16_pack_quads_transposed(std::int64_t n, std::int64_t k, const GemmOperand<float>& x, std::int64_t ld,
                                       std::uint16_t* panels, std::int64_t panel_stride) {
  const RoundedFloats d;
  constexpr int kColumns = kLanesPer128<float>;
  HWY_ALIGN float buffer[kBf16Depth * kBf16PanelWidth];
  for (std::int64_t i = 0; i < n; i += kBf16PanelWidth) {
    for (std::int64_t p = 0; p < k; p += kBf16Depth) {
      const Bf16Block block = bf16_padded<kBf16Depth, kBf16PanelWidth>(k - p, n - i, x + (p * ld + i), ld, buffer);
      for (std::int64_t s = 0; s < kBf16Depth; s += kRoundedLanes) {
        for (std::int64_t j = 0; j < kBf16PanelWidth; j += kColumns) {
          RoundedVec columns[1][kColumns];
          load_columns<1>(
              d, [&](std::int64_t lane) HWY_ATTR { return block.at + (s + lane) * block.stride + j; }, columns);
          MAKI_UNROLL for (int c = 0; c < kColumns; ++c) {
            bf16_store_quad(round_to_bf16(columns[0][c]), bf16_quad(panels, panel_stride, i + j + c, p + s));
          }
        }
      }
    }
  }
}

/// A tile of kPairs pairs of rows and four pairs of columns, whose sums are 2 × 2 blocks; `rows` of them exist.
template <int kPairs>
HWY_NOINLINE void bf16_quad_tile(std::int64_t rows, const Bf16TileCall<std::uint16_t>& call) {
  const RoundedFloats d;
  const Bf16Quads bits;
  constexpr std::int64_t kPair = 2 * kBf16Depth;
  const auto row = [&](std::int64_t r, int v) HWY_ATTR {  // columns 4v to 4v + 3 of row r before the products
    const std::int64_t count = r < rows ? call.columns - 4 * v : 0;
    const auto start = call.start_row == nullptr ? hn::Zero(d) : LoadPartial(d, call.start_row + 4 * v, count);
    return call.accumulate ? hn::Add(LoadPartial(d, call.c + r * call.ldc + 4 * v, count), start) : start;
  };
  RoundedVec sum[kPairs][4];
  MAKI_UNROLL for (int i = 0; i < kPairs; ++i) {
    MAKI_UNROLL for (int v = 0; v < 2; ++v) {
      const RoundedVec upper = row(2 * i, v), lower = row(2 * i + 1, v);
      sum[i][2 * v] = hn::ConcatLowerLower(d, lower, upper);
      sum[i][2 * v + 1] = hn::ConcatUpperUpper(d, lower, upper);
    }
  }
  const std::uint16_t *a = call.a, *b = call.b;
  for (std::int64_t g = 0; g < call.groups; ++g, a += kBf16GroupElements, b += kBf16GroupElements) {
    for (std::int64_t p = 0; p < kPair; p += 8) {
      hn::Vec<Bf16Quads> x[kPairs], y[4];
      MAKI_UNROLL for (int j = 0; j < 4; ++j) y[j] = hn::Load(bits, b + j * kPair + p);
      MAKI_UNROLL for (int i = 0; i < kPairs; ++i) x[i] = hn::Load(bits, a + i * kPair + p);
      MAKI_UNROLL for (int i = 0; i < kPairs; ++i) {
        MAKI_UNROLL for (int j = 0; j < 4; ++j) bf16_add_products(sum[i][j], x[i], y[j]);
      }
    }
  }
  MAKI_UNROLL for (int i = 0; i < kPairs; ++i) {
    MAKI_UNROLL for (int v = 0; v < 2; ++v) {
      float* const c = call.c + 2 * i * call.ldc + 4 * v;
      const RoundedVec left = sum[i][2 * v], right = sum[i][2 * v + 1];
      StorePartial(hn::ConcatLowerLower(d, right, left), d, c, call.columns - 4 * v);
      if (2 * i + 1 < rows) StorePartial(hn::ConcatUpperUpper(d, right, left), d, c + call.ldc, call.columns - 4 * v);
    }
  }
}

/// GEMM on 2 × 4 bfloat16 numbers (bf16_block()). 8 × 8 sums are 16 vectors; with 4 of A and 4 of B they fit in the 32
/// registers.
struct Bf16Matrices {
  using Element = std::uint16_t;
  static constexpr std::int64_t kElementsPerFloat = 2, kColumnElements = kBf16Depth;
  static constexpr int kTileRows = 8, kTileColumns = 8, kRowsTogether = 2;

  static void pack_a(std::int64_t m, std::int64_t k, const GemmOperand<float>& a, std::int64_t lda, bool transposed,
                     Element* panel) {
    pack(m, k, a, lda, transposed, panel, 0);
  }
  static void pack_b(std::int64_t k, std::int64_t n, const GemmOperand<float>& b, std::int64_t ldb, bool transposed,
                     Element* panels, std::int64_t panel_stride) {
    pack(n, k, b, ldb, !transposed, panels, panel_stride);
  }
  static void round_row(std::int64_t n, const float* x, BFloat16* y, bool streams) {
    Bf16Floats32::round_row(n, x, y, streams);
  }
  static void tile(std::int64_t rows, const Bf16TileCall<Element>& call) {
    using Tile = void (*)(std::int64_t, const Bf16TileCall<Element>&);
    static constexpr Tile kTiles[] = {bf16_quad_tile<1>, bf16_quad_tile<2>, bf16_quad_tile<3>, bf16_quad_tile<4>};
    kTiles[(rows - 1) / 2](rows, call);
  }

 private:
  static void pack(std::int64_t n, std::int64_t k, const GemmOperand<float>& x, std::int64_t ld, bool transposed,
                   Element* panels, std::int64_t panel_stride) {
    if (transposed) return bf16_pack_quads_transposed(n, k, x, ld, panels, panel_stride);
    with_elements(x, [&](auto* numbers) { bf16_pack_quads(n, k, numbers, ld, panels, panel_stride); });
  }
};

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_ARCH_ARM_A64

#endif  // MAKI_KERNELS_GEMM_BF16_MATRICES_INL_H_
