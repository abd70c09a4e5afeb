// Packs the operands of products that round them to bfloat16, on CPUs with instructions for bfloat16. Included once for
// every SIMD target; empty unless it is an x86-64 target with AVX-512. Whether the CPU has the instructions is asked at
// run time: bf16.h and amx.h.
#if defined(MAKI_KERNELS_GEMM_BF16_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_GEMM_BF16_PACK_INL_H_
#undef MAKI_KERNELS_GEMM_BF16_PACK_INL_H_
#else
#define MAKI_KERNELS_GEMM_BF16_PACK_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "autograd/kernels/gemm/bf16_block-inl.h"
#include "autograd/kernels/simd/partial-inl.h"
#include "autograd/kernels/simd/transpose-inl.h"
#include "autograd/kernels/simd/unroll.h"

#undef MAKI_HAVE_BF16
#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX3
#define MAKI_HAVE_BF16 1
#else
#define MAKI_HAVE_BF16 0
#endif

#if MAKI_HAVE_BF16
HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Bf16Floats = hn::FixedTag<float, 16>;
using Bf16Vec = hn::Vec<Bf16Floats>;
/// 32 bfloat16 numbers, as their bits.
using Bf16Bits = hn::Repartition<std::uint16_t, Bf16Floats>;

inline constexpr std::int64_t kBf16VectorWidth = 16;  // columns of B in a vector of pairs
/// The numbers of `first` and `second` as 32 bfloat16 numbers: rounded to nearest, ties to even; subnormal numbers
/// become 0, and a NaN stays one. (Intel, Software Developer's Manual, volume 2, VCVTNE2PS2BF16.)
HWY_INLINE hn::Vec<Bf16Bits> bf16_rounded(Bf16Vec first, Bf16Vec second) {
  hn::Vec<Bf16Bits> rounded;
  asm("vcvtne2ps2bf16 %2, %1, %0" : "=v"(rounded.raw) : "v"(second.raw), "v"(first.raw));
  return rounded;
}

/// The indices that bring 32 steps of a row into the order of pairs: (2, 0), (3, 1), (6, 4), (7, 5), …
HWY_INLINE hn::Vec<Bf16Bits> bf16_row_order() {
  HWY_ALIGN static constexpr std::uint16_t kOrder[32] = {2,  0,  3,  1,  6,  4,  7,  5,  10, 8,  11,
                                                         9,  14, 12, 15, 13, 18, 16, 19, 17, 22, 20,
                                                         23, 21, 26, 24, 27, 25, 30, 28, 31, 29};
  return hn::Load(Bf16Bits(), kOrder);
}
/// The indices that interleave 16 numbers with 16 others: 0, 16, 1, 17, …
HWY_INLINE hn::Vec<Bf16Bits> bf16_pair_order() {
  HWY_ALIGN static constexpr std::uint16_t kOrder[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                         8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return hn::Load(Bf16Bits(), kOrder);
}
HWY_INLINE hn::Vec<Bf16Bits> bf16_permuted(hn::Vec<Bf16Bits> x, hn::Vec<Bf16Bits> order) {
  hn::Vec<Bf16Bits> y;
  asm("vpermw %2, %1, %0" : "=v"(y.raw) : "v"(order.raw), "v"(x.raw));
  return y;
}

/// 16 numbers of a row from `begin` on; zeros from `end` on. What two such vectors hold, bf16_joined() rounds, unless
/// it is rounded already, and puts one after the other.
HWY_INLINE Bf16Vec bf16_load(const float* row, std::int64_t begin, std::int64_t end) {
  return LoadPartial(Bf16Floats(), row + begin, end - begin);
}
using Bf16Half = hn::Half<Bf16Bits>;
HWY_INLINE hn::Vec<Bf16Half> bf16_load(const BFloat16* row, std::int64_t begin, std::int64_t end) {
  return LoadPartial(Bf16Half(), reinterpret_cast<const std::uint16_t*>(row + begin), end - begin);
}
HWY_INLINE hn::Vec<Bf16Bits> bf16_joined(Bf16Vec first, Bf16Vec second) { return bf16_rounded(first, second); }
HWY_INLINE hn::Vec<Bf16Bits> bf16_joined(hn::Vec<Bf16Half> first, hn::Vec<Bf16Half> second) {
  return hn::Combine(Bf16Bits(), second, first);
}
/// 32 numbers of a row from `begin` on, rounded; zeros from `end` on.
HWY_INLINE hn::Vec<Bf16Bits> bf16_load_row(const float* row, std::int64_t begin, std::int64_t end) {
  return bf16_rounded(bf16_load(row, begin, end), bf16_load(row, begin + 16, end));
}
HWY_INLINE hn::Vec<Bf16Bits> bf16_load_row(const BFloat16* row, std::int64_t begin, std::int64_t end) {
  return LoadPartial(Bf16Bits(), reinterpret_cast<const std::uint16_t*>(row + begin), end - begin);
}

/// How a panel is laid out for VDPBF16PS, which adds the product of the upper halves of two pairs to a sum, then that
/// of the lower halves. For a chain of even steps, the upper half is step p and the lower one step p + 2. A group of B
/// holds, for every four steps, the pairs of even steps of 32 columns, then those of odd steps.
struct Bf16PairOrder {
  static constexpr std::int64_t kColumnElements = 2, kStepElements = kBf16PanelWidth;
  /// From the pairs of even steps of B to those of odd steps.
  static constexpr std::int64_t kOddOffset = 2 * kBf16PanelWidth;

  /// Stores 32 steps of a row of A.
  static HWY_INLINE void store_row(hn::Vec<Bf16Bits> row, std::uint16_t* to) {
    hn::Store(bf16_permuted(row, bf16_row_order()), Bf16Bits(), to);
  }
  /// Stores four steps of 16 columns of B.
  template <class Half>
  static HWY_INLINE void store_steps(const Half (&x)[4], std::uint16_t* to) {
    const auto order = bf16_pair_order();
    hn::Store(bf16_permuted(bf16_joined(x[2], x[0]), order), Bf16Bits(), to);
    hn::Store(bf16_permuted(bf16_joined(x[3], x[1]), order), Bf16Bits(), to + kOddOffset);
  }
};

/// How a panel is laid out for tiles of AMX: a row of a tile is 32 steps of a row of A, or two steps of 16 columns of B
/// in pairs (p, p + 1). A group consists of two tiles.
struct Bf16TileOrder {
  static constexpr std::int64_t kColumnElements = kBf16Depth, kStepElements = kBf16PanelWidth / 2;

  static HWY_INLINE void store_row(hn::Vec<Bf16Bits> row, std::uint16_t* to) { hn::Store(row, Bf16Bits(), to); }
  template <class Half>
  static HWY_INLINE void store_steps(const Half (&x)[4], std::uint16_t* to) {
    const auto order = bf16_pair_order();
    hn::Store(bf16_permuted(bf16_joined(x[0], x[1]), order), Bf16Bits(), to);
    hn::Store(bf16_permuted(bf16_joined(x[2], x[3]), order), Bf16Bits(), to + 2 * kStepElements);
  }
};

/// Packs four steps, from p on (a multiple of 4), of one vector of columns, from j on.
template <class Order, class Half>
HWY_INLINE void bf16_store_steps(const Half (&x)[4], std::int64_t p, std::int64_t j, std::uint16_t* panels,
                                 std::int64_t panel_stride) {
  Order::store_steps(x, bf16_columns<Order::kColumnElements>(panels, panel_stride, j) +
                            p / kBf16Depth * kBf16GroupElements + p % kBf16Depth * Order::kStepElements);
}

/// Packs a row-major A [m, k], m <= 32, as one panel; rows beyond m are left uninitialized.
template <class Order, class X>
void bf16_pack_rows(std::int64_t m, std::int64_t k, const X* a, std::int64_t lda, std::uint16_t* panel) {
  for (std::int64_t i = 0; i < m; ++i) {
    std::uint16_t* to = panel + i * kBf16Depth;
    for (std::int64_t p = 0; p < k; p += kBf16Depth, to += kBf16GroupElements) {
      Order::store_row(bf16_load_row(a + i * lda, p, k), to);
    }
  }
}

/// Columns of `pairs` [16, 16], each of 32 bits, in rows that are `stride` elements apart, as vectors: column[q / 4][q
/// % 4] is column q.
HWY_INLINE void bf16_load_pairs(const float* pairs, std::int64_t stride, Bf16Vec (&column)[4][4]) {
  load_columns<4>(
      Bf16Floats(), [=](std::int64_t lane) HWY_ATTR { return pairs + lane * stride; }, column);
}

/// The most rows of A that are packed together, which bounds a buffer on the stack to 32 KiB.
inline constexpr std::int64_t kMaxBf16PackedRows = 512;

/// Packs a transposed A [m, k], element (i, p) at a[p * lda + i], with m <= kMaxBf16PackedRows, as panels that are
/// panel_stride elements apart. Two rows of `a` at a time are rounded and interleaved, which halves what is left to be
/// transposed, and reads memory in its order: reading 64 bytes of each of 32 rows, a core reached 5.7 GB/s where it
/// reads 14.5 in order.
template <class Order, class X>
void bf16_pack_rows_transposed(std::int64_t m, std::int64_t k, const X* a, std::int64_t lda, std::uint16_t* panel,
                               std::int64_t panel_stride) {
  HWY_ALIGN float pairs[16 * kMaxBf16PackedRows];
  const std::int64_t stride = (m + 15) / 16 * 16;
  for (std::int64_t p = 0; p < k; p += kBf16Depth, panel += kBf16GroupElements) {
    for (std::int64_t s = 0; s < kBf16Depth; s += 2) {
      const X* const row = a + (p + s) * lda;
      const std::int64_t first = p + s < k ? m : 0, second = p + s + 1 < k ? m : 0;
      for (std::int64_t i = 0; i < m; i += 16) {
        hwy::Prefetch(row + 4 * lda + i);
        hwy::Prefetch(row + 5 * lda + i);
        const auto x = bf16_joined(bf16_load(row, i, first), bf16_load(row + lda, i, second));
        hn::Store(bf16_permuted(x, bf16_pair_order()), Bf16Bits(),
                  reinterpret_cast<std::uint16_t*>(pairs + s / 2 * stride + i));
      }
    }
    for (std::int64_t i = 0; i < m; i += 16) {
      Bf16Vec row[4][4];
      bf16_load_pairs(pairs + i, stride, row);
      std::uint16_t* const to = panel + i / kBf16PanelWidth * panel_stride + i % kBf16PanelWidth * kBf16Depth;
      MAKI_UNROLL for (int q = 0; q < 16; ++q) {
        Order::store_row(hn::BitCast(Bf16Bits(), row[q / 4][q % 4]), to + q * kBf16Depth);
      }
    }
  }
}

/// Packs a row-major B. Prefetches 16 rows ahead.
template <class Order, class X>
void bf16_pack_columns(std::int64_t k, std::int64_t n, const X* b, std::int64_t ldb, std::uint16_t* panels,
                       std::int64_t panel_stride) {
  for (std::int64_t p = 0; p < (k + kBf16Depth - 1) / kBf16Depth * kBf16Depth; p += 4) {
    for (std::int64_t j = 0; j < n; j += kBf16VectorWidth) {
      decltype(bf16_load(b, 0, 0)) x[4];
      MAKI_UNROLL for (int s = 0; s < 4; ++s) {
        hwy::Prefetch(b + (p + 16 + s) * ldb + j);
        x[s] = bf16_load(b + (p + s) * ldb, j, p + s < k ? n : 0);
      }
      bf16_store_steps<Order>(x, p, j, panels, panel_stride);
    }
  }
}

/// Packs a transposed B, element (p, j) at b[j * ldb + p], in blocks of 32 steps by 16 columns; prefetches 512 bytes
/// ahead in each column.
template <class Order, class X>
void bf16_pack_columns_transposed(std::int64_t k, std::int64_t n, const X* b, std::int64_t ldb, std::uint16_t* panels,
                                  std::int64_t panel_stride) {
  HWY_ALIGN float pairs[16 * 16];
  for (std::int64_t j = 0; j < n; j += kBf16VectorWidth) {
    std::uint16_t* to = bf16_columns<Order::kColumnElements>(panels, panel_stride, j);
    for (std::int64_t p = 0; p < k; p += kBf16Depth, to += kBf16GroupElements) {
      for (std::int64_t c = 0; c < kBf16VectorWidth; ++c) {
        const X* const column = b + (j + c) * ldb;
        const std::int64_t end = j + c < n ? k : 0;
        hwy::Prefetch(column + p + 128);
        Order::store_row(bf16_load_row(column, p, end), reinterpret_cast<std::uint16_t*>(pairs + c * 16));
      }
      Bf16Vec steps[4][4];
      bf16_load_pairs(pairs, 16, steps);
      MAKI_UNROLL for (int q = 0; q < 16; ++q) {
        hn::Store(hn::BitCast(Bf16Bits(), steps[q / 4][q % 4]), Bf16Bits(), to + 2 * q * Order::kStepElements);
      }
    }
  }
}

/// The packing functions of a kernel (bf16_block()).
template <class Order>
struct Bf16Packing {
  using Element = std::uint16_t;
  static constexpr std::int64_t kElementsPerFloat = 2, kColumnElements = Order::kColumnElements;

  static void pack_a(std::int64_t m, std::int64_t k, const GemmOperand<float>& a, std::int64_t lda, bool transposed,
                     Element* panel) {
    if (transposed) return pack_rows_transposed(m, k, a, lda, panel, 0);
    with_elements(a, [&](auto* x) { bf16_pack_rows<Order>(m, k, x, lda, panel); });
  }
  /// Packs any number of rows of a transposed A, up to kMaxBf16PackedRows.
  static void pack_rows_transposed(std::int64_t m, std::int64_t k, const GemmOperand<float>& a, std::int64_t lda,
                                   Element* panels, std::int64_t panel_stride) {
    with_elements(a, [&](auto* x) { bf16_pack_rows_transposed<Order>(m, k, x, lda, panels, panel_stride); });
  }
  static void pack_b(std::int64_t k, std::int64_t n, const GemmOperand<float>& b, std::int64_t ldb, bool transposed,
                     Element* panels, std::int64_t panel_stride) {
    with_elements(b, [&]<class X>(const X* x) {
      (transposed ? bf16_pack_columns_transposed<Order, X> : bf16_pack_columns<Order, X>)(k, n, x, ldb, panels,
                                                                                          panel_stride);
    });
  }
  /// Rounds n numbers.
  static void round_row(std::int64_t n, const float* x, BFloat16* y, bool streams) {
    for (std::int64_t j = 0; j < n; j += 32) {
      auto* const to = reinterpret_cast<std::uint16_t*>(y + j);
      const auto rounded = bf16_load_row(x, j, n);
      streams&& j + 32 <= n ? hn::Stream(rounded, Bf16Bits(), to) : StorePartial(rounded, Bf16Bits(), to, n - j);
    }
  }
  /// Packs the 32 steps of row i of a panel's group.
  static HWY_INLINE void store_row(const Bf16Vec (&x)[2], std::int64_t i, Element* group) {
    Order::store_row(bf16_rounded(x[0], x[1]), group + i * kBf16Depth);
  }
  /// Packs four steps, from p on (a multiple of 4), of one vector of columns, from j on.
  static HWY_INLINE void store_steps(const Bf16Vec (&x)[4], std::int64_t p, std::int64_t j, Element* panels,
                                     std::int64_t panel_stride) {
    bf16_store_steps<Order>(x, p, j, panels, panel_stride);
  }
};

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // MAKI_HAVE_BF16

#endif  // MAKI_KERNELS_GEMM_BF16_PACK_INL_H_
