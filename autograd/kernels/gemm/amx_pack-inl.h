// Packs the operands of float32 products on AMX: every number is split into the sum of three bfloat16 numbers (8 + 8 +
// 8 of its 24 bits), stored as whole tiles. Included once for every SIMD target; empty unless it is an x86-64 target
// with AVX-512.
#if defined(MAKI_KERNELS_GEMM_AMX_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_GEMM_AMX_PACK_INL_H_
#undef MAKI_KERNELS_GEMM_AMX_PACK_INL_H_
#else
#define MAKI_KERNELS_GEMM_AMX_PACK_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "autograd/kernels/simd/partial-inl.h"
#include "autograd/kernels/simd/transpose-inl.h"
#include "autograd/kernels/simd/unroll.h"

#undef MAKI_HAVE_AMX
#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX3
#define MAKI_HAVE_AMX 1
#else
#define MAKI_HAVE_AMX 0
#endif

#if MAKI_HAVE_AMX
HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using AmxFloats = hn::FixedTag<float, 16>;
using AmxVec = hn::Vec<AmxFloats>;

inline constexpr std::int64_t kAmxTileRows = 16;       // rows of a tile; also its columns, if they are float32
inline constexpr std::int64_t kAmxTileDepth = 32;      // steps of K in a tile of bfloat16
inline constexpr std::int64_t kAmxTileElements = 512;  // bfloat16 numbers in a tile
inline constexpr std::int64_t kAmxPanelWidth = 2 * kAmxTileRows;  // rows of a panel of A, columns of a panel of B
/// Steps of K whose small products (amx_tile-inl.h) are all added before their large ones. More would round less often;
/// the packed operands of 128 steps, 24 KiB each, fill a level-1 cache of 48 KiB, and their high pieces are read twice.
/// The bits of every product on AMX depend on it. A multiple of kAmxTileDepth.
inline constexpr std::int64_t kAmxSmallFirstDepth = 128;

/// A panel is a sequence of groups of kAmxTileDepth steps. A group holds 32 rows of A, or 32 columns of B, as two
/// tiles, each in three pieces: high, middle, low. The offsets are in bfloat16 numbers.
inline constexpr std::int64_t kAmxHighOffset = 0, kAmxMiddleOffset = kAmxTileElements;
inline constexpr std::int64_t kAmxLowOffset = 2 * kAmxTileElements, kAmxSplitTileElements = 3 * kAmxTileElements;
inline constexpr std::int64_t kAmxGroupElements = 2 * kAmxSplitTileElements;

/// x = high + middle + low, exactly (but below 1e-31 the low piece can be subnormal, which AMX treats as 0). A piece is
/// the upper 16 bits of each element. High and middle are rounded to nearest, ties away from zero, so that the
/// remainder fits in the next piece. An infinity becomes NaN, as does a number above 3.39e38, which high rounds to one.
struct AmxSplit {
  explicit HWY_INLINE AmxSplit(AmxVec x) {
    const AmxFloats d;
    const hn::RebindToUnsigned<AmxFloats> bits;
    const auto half = hn::Set(bits, 0x8000U), upper = hn::Set(bits, 0xFFFF0000U);
    high = hn::Add(hn::BitCast(bits, x), half);
    const AmxVec rest = hn::Sub(x, hn::BitCast(d, hn::And(high, upper)));
    middle = hn::Add(hn::BitCast(bits, rest), half);
    low = hn::BitCast(bits, hn::Sub(rest, hn::BitCast(d, hn::And(middle, upper))));
  }
  hn::Vec<hn::RebindToUnsigned<AmxFloats>> high, middle, low;
};

/// Stores 32 consecutive steps of one row of A: one row of a tile, in its three pieces.
HWY_INLINE void amx_store_row(const AmxSplit& first, const AmxSplit& second, std::uint16_t* to) {
  const hn::Repartition<std::uint16_t, AmxFloats> d;
  const auto piece = [&](auto x, auto y) HWY_ATTR { return hn::ConcatOdd(d, hn::BitCast(d, y), hn::BitCast(d, x)); };
  hn::Store(piece(first.high, second.high), d, to + kAmxHighOffset);
  hn::Store(piece(first.middle, second.middle), d, to + kAmxMiddleOffset);
  hn::Store(piece(first.low, second.low), d, to + kAmxLowOffset);
}

/// Stores two consecutive steps of 16 columns of B: one row of a tile, in its three pieces, with the steps in pairs.
HWY_INLINE void amx_store_pairs(const AmxSplit& even, const AmxSplit& odd, std::uint16_t* to) {
  const hn::Repartition<std::uint16_t, AmxFloats> d;
  const auto piece = [&](auto x, auto y)
                         HWY_ATTR { return hn::OddEven(hn::BitCast(d, y), hn::BitCast(d, hn::ShiftRight<16>(x))); };
  hn::Store(piece(even.high, odd.high), d, to + kAmxHighOffset);
  hn::Store(piece(even.middle, odd.middle), d, to + kAmxMiddleOffset);
  hn::Store(piece(even.low, odd.low), d, to + kAmxLowOffset);
}

/// Elements of a row from `begin` on as a vector; zeros from `end` on.
HWY_INLINE AmxVec amx_load(const float* row, std::int64_t begin, std::int64_t end) {
  const AmxFloats d;
  if (end - begin >= kAmxTileRows) return hn::LoadU(d, row + begin);
  return end > begin ? LoadPartial(d, row + begin, end - begin) : hn::Zero(d);
}

/// Copies a partial block [rows, columns] into `buffer` [kRows, kColumns], padded with zeros; returns the buffer.
template <std::int64_t kRows, std::int64_t kColumns>
const float* amx_pad_block(std::int64_t rows, std::int64_t columns, const float* block, std::int64_t stride,
                           float (&buffer)[kRows * kColumns]) {
  std::fill_n(buffer, kRows * kColumns, 0.0F);
  for (std::int64_t r = 0; r < rows; ++r) std::copy_n(block + r * stride, columns, buffer + r * kColumns);
  return buffer;
}

/// Packs a row-major A: group g of row i becomes row i % 16 of a tile.
inline void amx_pack_rows(std::int64_t m, std::int64_t k, const float* a, std::int64_t lda, std::uint16_t* panel) {
  for (std::int64_t i = 0; i < m; ++i) {
    const float* const row = a + i * lda;
    std::uint16_t* to = panel + i / kAmxTileRows * kAmxSplitTileElements + i % kAmxTileRows * kAmxTileDepth;
    for (std::int64_t p = 0; p < k; p += kAmxTileDepth, to += kAmxGroupElements) {
      amx_store_row(AmxSplit(amx_load(row, p, k)), AmxSplit(amx_load(row, p + kAmxTileRows, k)), to);
    }
  }
}

/// Packs a transposed A, element (i, p) at a[p * lda + i], by transposing 8 rows of op(A) at a time.
inline void amx_pack_rows_transposed(std::int64_t m, std::int64_t k, const float* a, std::int64_t lda,
                                     std::uint16_t* panel) {
  const AmxFloats d;
  HWY_ALIGN float buffer[kAmxTileDepth * kAmxTileRows];
  for (std::int64_t p = 0; p < k; p += kAmxTileDepth, panel += kAmxGroupElements) {
    for (std::int64_t i = 0; i < m; i += kAmxTileRows) {
      const float* block = a + p * lda + i;
      std::int64_t stride = lda;
      const std::int64_t depth = std::min(kAmxTileDepth, k - p), rows = std::min(kAmxTileRows, m - i);
      if (depth < kAmxTileDepth || rows < kAmxTileRows) {
        block = amx_pad_block<kAmxTileDepth, kAmxTileRows>(depth, rows, block, stride, buffer);
        stride = kAmxTileRows;
      }
      std::uint16_t* const tile = panel + i / kAmxTileRows * kAmxSplitTileElements;
      for (std::int64_t c = 0; c < kAmxTileRows; c += 8) {
        AmxVec first[2][4], second[2][4];
        load_columns<2>(
            d, [&](std::int64_t lane) HWY_ATTR { return block + lane * stride + c; }, first);
        load_columns<2>(
            d, [&](std::int64_t lane) HWY_ATTR { return block + (kAmxTileRows + lane) * stride + c; }, second);
        MAKI_UNROLL for (int q = 0; q < 8; ++q) {
          amx_store_row(AmxSplit(first[q / 4][q % 4]), AmxSplit(second[q / 4][q % 4]), tile + (c + q) * kAmxTileDepth);
        }
      }
    }
  }
}

/// Packs op(A) [m, k], m <= 32, as one panel. Rows beyond m may be left uninitialized: no element of C depends on them.
inline void amx_pack_a(std::int64_t m, std::int64_t k, const float* a, std::int64_t lda, bool transposed,
                       std::uint16_t* panel) {
  (transposed ? amx_pack_rows_transposed : amx_pack_rows)(m, k, a, lda, panel);
}

/// The tile of the first group that holds column j.
HWY_INLINE std::uint16_t* amx_columns(std::uint16_t* panels, std::int64_t panel_stride, std::int64_t j) {
  return panels + j / kAmxPanelWidth * panel_stride + j % kAmxPanelWidth / kAmxTileRows * kAmxSplitTileElements;
}

/// Packs a row-major B: two rows of B become one row of every tile. Prefetches 16 rows ahead, which saves 3 % of a
/// training step of gpt2, whose weights come from memory.
inline void amx_pack_columns(std::int64_t k, std::int64_t n, const float* b, std::int64_t ldb, std::uint16_t* panels,
                             std::int64_t panel_stride) {
  for (std::int64_t p = 0; p < (k + kAmxTileDepth - 1) / kAmxTileDepth * kAmxTileDepth; p += 2) {
    const float* const even = b + p * ldb;
    for (std::int64_t j = 0; j < n; j += kAmxTileRows) {
      hwy::Prefetch(even + 16 * ldb + j);
      hwy::Prefetch(even + 17 * ldb + j);
      const AmxVec x = amx_load(even, j, p < k ? n : 0), y = amx_load(even + ldb, j, p + 1 < k ? n : 0);
      amx_store_pairs(AmxSplit(x), AmxSplit(y),
                      amx_columns(panels, panel_stride, j) + p / kAmxTileDepth * kAmxGroupElements +
                          p % kAmxTileDepth * kAmxTileRows);
    }
  }
}

/// Packs a transposed B, element (p, j) at b[j * ldb + p], in blocks of 32 steps by 16 columns; prefetches 512 bytes
/// ahead in each column, which was measured on the vector units only (gemm/pack-inl.h).
inline void amx_pack_columns_transposed(std::int64_t k, std::int64_t n, const float* b, std::int64_t ldb,
                                        std::uint16_t* panels, std::int64_t panel_stride) {
  const AmxFloats d;
  HWY_ALIGN float buffer[kAmxTileRows * kAmxTileDepth];
  for (std::int64_t j = 0; j < n; j += kAmxTileRows) {
    std::uint16_t* to = amx_columns(panels, panel_stride, j);
    for (std::int64_t p = 0; p < k; p += kAmxTileDepth, to += kAmxGroupElements) {
      const float* block = b + j * ldb + p;
      std::int64_t stride = ldb;
      const std::int64_t depth = std::min(kAmxTileDepth, k - p), columns = std::min(kAmxTileRows, n - j);
      if (depth < kAmxTileDepth || columns < kAmxTileRows) {
        block = amx_pad_block<kAmxTileRows, kAmxTileDepth>(columns, depth, block, stride, buffer);
        stride = kAmxTileDepth;
      } else {
        MAKI_UNROLL for (std::int64_t lane = 0; lane < kAmxTileRows; ++lane) hwy::Prefetch(block + lane * stride + 128);
      }
      for (std::int64_t q = 0; q < kAmxTileDepth; q += 8) {
        AmxVec x[2][4];
        load_columns<2>(
            d, [&](std::int64_t lane) HWY_ATTR { return block + lane * stride + q; }, x);
        MAKI_UNROLL for (int r = 0; r < 8; r += 2) {
          amx_store_pairs(AmxSplit(x[r / 4][r % 4]), AmxSplit(x[r / 4][r % 4 + 1]), to + (q + r) * kAmxTileRows);
        }
      }
    }
  }
}

/// Packs op(B) [k, n] as panels, panel_stride bfloat16 numbers apart, padded with zeros to whole tiles: a multiple of
/// 32 steps and of 16 columns. A second tile of the last panel that would have no column of B is not written.
inline void amx_pack_b(std::int64_t k, std::int64_t n, const float* b, std::int64_t ldb, bool transposed,
                       std::uint16_t* panels, std::int64_t panel_stride) {
  (transposed ? amx_pack_columns_transposed : amx_pack_columns)(k, n, b, ldb, panels, panel_stride);
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // MAKI_HAVE_AMX

#endif  // MAKI_KERNELS_GEMM_AMX_PACK_INL_H_
