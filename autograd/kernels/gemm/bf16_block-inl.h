// Products of operands that are rounded to bfloat16 (Gemm::rounds_operands): the layout of packed panels, and the loop
// over the register tiles of a block, which all kernels for such products share. Included once for every SIMD target.
//
// Kernels with instructions for bfloat16 sum in the order of an AMX tile (amx.h), so that they give the same bits: an
// element begins with beta C plus the bias; of every 32 steps, the even steps are summed as one chain from 0 and the
// odd steps as another, and the sum of both is added to the element. Without these instructions the steps are added to
// it one after the other, because a second chain costs a fifth of the speed. K is not divided into chains of 512: the
// rounding of the operands costs a thousand times the digits that a long sum does. The product of two bfloat16 numbers
// is exact in float32, so it does not matter whether it is fused with the sum. Subnormal numbers count as 0, as in the
// instructions for bfloat16. (Without fused multiply-add, that holds for products below 1e-38 too, which other targets
// may add exactly.)
#if defined(MAKI_KERNELS_GEMM_BF16_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_GEMM_BF16_BLOCK_INL_H_
#undef MAKI_KERNELS_GEMM_BF16_BLOCK_INL_H_
#else
#define MAKI_KERNELS_GEMM_BF16_BLOCK_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "autograd/core/parallel.h"
#include "autograd/kernels/gemm/activate-inl.h"
#include "autograd/kernels/gemm/block.h"
#include "autograd/kernels/simd/flush_subnormals.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// A panel has the width of 32 rows of A or 32 columns of B, two tiles of AMX. It is a sequence of groups of 32 steps
/// of K, the depth of a tile, the last one padded with zeros. In a group of A, the 32 numbers of each row are together;
/// the order within a group of B is that of the kernel.
inline constexpr std::int64_t kBf16PanelWidth = 32, kBf16Depth = 32;
inline constexpr std::int64_t kBf16GroupElements = kBf16PanelWidth * kBf16Depth;

// A kernel is a struct with the size of its register tiles, the number of rows that a panel of A holds together (a tile
// begins with the first of them), functions that pack operands, and `tile`, which computes a Bf16TileCall. While its
// ThreadScope exists, a thread may call `tile`.

/// One register tile: C [rows, columns] = (accumulate ? C : 0) + (start_row in every row, or 0) + A B, of which the
/// chains begin with the former two. Nothing beyond these rows and columns is touched.
template <class Element>
struct Bf16TileCall {
  std::int64_t groups;   // steps in groups
  const Element *a, *b;  // packed panels, at the first row and the first column of the tile
  float* c;
  std::ptrdiff_t ldc;
  bool accumulate;
  const float* start_row;  // the row (of the bias) that each row of the sum starts from; null: zeros
  std::int64_t columns;
  /// What is needed when the sums are complete and may be in no cache: numbers of `ahead_size` bytes, at the place of
  /// each sum; null: nothing. On AMX they are prefetched while the tile multiplies. For C that saves 3 to 15 % of large
  /// products.
  const std::byte* ahead = nullptr;
  std::ptrdiff_t ahead_stride = 0;  // bytes between rows
  std::ptrdiff_t ahead_size = 0;
};

/// Where a block of kRows rows and kColumns columns is read from: in place if it is whole, else from `buffer`, to which
/// it is copied, as float32 numbers, and padded with zeros. rows and columns are those that exist; more than kRows or
/// kColumns are possible.
struct Bf16Block {
  const float* at;
  std::int64_t stride;
};
template <std::int64_t kRows, std::int64_t kColumns>
Bf16Block bf16_padded(std::int64_t rows, std::int64_t columns, const GemmOperand<float>& block, std::int64_t stride,
                      float (&buffer)[kRows * kColumns]) {
  if (block.rounded == nullptr && rows >= kRows && columns >= kColumns) return {block.values, stride};
  std::fill_n(buffer, kRows * kColumns, 0.0F);
  for (std::int64_t r = 0; r < std::min(rows, kRows); ++r) {
    const std::int64_t count = std::min(columns, kColumns);
    float* const to = buffer + r * kColumns;
    if (block.rounded != nullptr) {
      std::transform(block.rounded + r * stride, block.rounded + r * stride + count, to, to_float);
    } else {
      std::copy_n(block.values + r * stride, count, to);
    }
  }
  return {buffer, kColumns};
}

/// Calls body with the pointer to the numbers of an operand.
template <class Body>
HWY_INLINE void with_elements(const GemmOperand<float>& x, const Body& body) {
  x.rounded != nullptr ? body(x.rounded) : body(x.values);
}

/// The element of the first group of packed B at which the columns from j on begin, where a register tile may begin.
/// kElements is how far these are from column 0 of the panel, per column: 1 if the columns of a step are together, 2
/// for pairs of steps, 32 if all steps of a tile's columns are together.
template <std::int64_t kElements, class Element>
HWY_INLINE Element* bf16_columns(Element* panels, std::int64_t panel_stride, std::int64_t j) {
  return panels + j / kBf16PanelWidth * panel_stride + j % kBf16PanelWidth * kElements;
}

/// The product of one panel of A, of which `rows` are used (at most 32), and any number of columns: `whole` is a
/// register tile that has all of them, and panel_stride the distance of the panels of B in elements.
///
/// Columns are the outer loop: a tile's columns of B are read from beyond the level-1 cache once, and not once for each
/// tile of rows, whose packed rows are fewer. On AVX2 with 512 KiB of level-2 cache, which a block's B exceeds, that
/// leaves a quarter of the level-2 misses of the other order in a step of `maki bench --preset baby --batch-size 3`
/// (1.1 instead of 4.8 billion cache lines in the whole run).
template <class Kernel>
void bf16_panel_product(std::int64_t rows, const Bf16TileCall<typename Kernel::Element>& whole,
                        std::int64_t panel_stride) {
  Bf16TileCall<typename Kernel::Element> tile = whole;
  const std::int64_t tiles = ceil_div(rows, Kernel::kTileRows);  // of nearly equal height
  const std::int64_t together = ceil_div(rows, Kernel::kRowsTogether);
  for (std::int64_t j = 0; j < whole.columns; j += Kernel::kTileColumns) {
    tile.columns = std::min<std::int64_t>(Kernel::kTileColumns, whole.columns - j);
    tile.b = bf16_columns<Kernel::kColumnElements>(whole.b, panel_stride, j);
    tile.start_row = whole.start_row != nullptr ? whole.start_row + j : nullptr;
    if (whole.ahead != nullptr) tile.ahead = whole.ahead + j * whole.ahead_size;
    if constexpr (Kernel::kTileRows >=
                  kBf16PanelWidth) {  // one tile, without the divisions below, which take as long as a short chain
      tile.c = whole.c + j;
      Kernel::tile(rows, tile);
      continue;
    }
    for (std::int64_t t = 0; t < tiles; ++t) {
      const std::int64_t r = together * t / tiles * Kernel::kRowsTogether;
      const std::int64_t end = std::min(rows, together * (t + 1) / tiles * Kernel::kRowsTogether);
      tile.a = whole.a + r * kBf16Depth;
      tile.c = whole.c + r * whole.ldc + j;
      Kernel::tile(end - r, tile);
    }
  }
}

/// Sets what a panel of rows from i on prefetches: C, unless it is stored past the caches. (Prefetching the factor
/// makes 256 × 3072 × 768 and 4096 × 1536 × 384 slower, by 6 to 10 %.)
template <class Element>
void bf16_look_ahead(const GemmBlock<float>& g, std::int64_t i, Bf16TileCall<Element>& call) {
  const auto set = [&]<class T>(const T* x) {
    call.ahead_size = sizeof(T);
    call.ahead_stride = g.ldc * call.ahead_size;
    call.ahead = reinterpret_cast<const std::byte*>(x + i * g.ldc);
  };
  if (g.streams) return;
  g.c_rounded != nullptr ? set(g.c_rounded) : set(g.c);
}

/// Finishes rows [begin, begin + rows) of C in its buffer, whose rows are `ld` apart, and stores them.
template <class Kernel>
void bf16_store_buffer(const GemmBlock<float>& g, std::int64_t begin, std::int64_t rows, std::int64_t ld) {
  for (std::int64_t r = 0; r < rows; ++r) {
    float* const from = g.c_buffer + r * ld;
    const std::int64_t to = (begin + r) * g.ldc;
    if (g.c_rounded == nullptr) {
      finish_row<StorePast, StorePast>(g, to, g.n, from, g.c + to);
    } else {
      g.streams ? finish_row<StoreInCaches, StorePast>(g, to, g.n, from, from)
                : finish_row<StoreInCaches, StoreInCaches>(g, to, g.n, from, from);
      Kernel::round_row(g.n, from, g.c_rounded + to, g.streams);
    }
  }
}

/// Computes one GemmBlock (gemm/block.h), with its bias and activation, 32 rows at a time. GEMM counts the sizes of
/// packed panels in float32 numbers, each of which takes the space of Kernel::kElementsPerFloat elements.
template <class Kernel>
void bf16_block(const GemmBlock<float>& g) {
  using Element = typename Kernel::Element;
  constexpr std::int64_t kScale = Kernel::kElementsPerFloat;
  Bf16TileCall<Element> call{};
  call.groups = ceil_div(g.k, kBf16Depth);
  call.ldc = g.c_buffer != nullptr ? ceil_div(g.n, kBf16PanelWidth) * kBf16PanelWidth : g.ldc;
  call.accumulate = g.accumulate;
  call.start_row = g.bias;
  call.columns = g.n;
  auto* const own_a = reinterpret_cast<Element*>(g.a_buffer);
  const auto* b = reinterpret_cast<const Element*>(g.b.values);
  std::int64_t panel = kScale * g.ldb;
  if (g.b_layout != GemmLayoutB::packed) {
    auto* const own = reinterpret_cast<Element*>(g.b_buffer);
    panel = call.groups * kBf16GroupElements;
    Kernel::pack_b(g.k, g.n, g.b, g.ldb, g.b_layout == GemmLayoutB::column_major, own, panel);
    b = own;
  }
  call.b = b;
  const std::int64_t a_panel = call.groups * kBf16GroupElements;
  if constexpr (requires { &Kernel::pack_rows_transposed; }) {
    if (g.packs_all_a) Kernel::pack_rows_transposed(g.m, g.k, g.a, g.lda, own_a, a_panel);
  }
  for (std::int64_t i = 0; i < g.m; i += kBf16PanelWidth) {
    const std::int64_t rows = std::min(kBf16PanelWidth, g.m - i);
    const Element* a = own_a;
    if (g.packs_all_a) {
      a = own_a + i / kBf16PanelWidth * a_panel;
    } else if (g.a_packed) {
      a = reinterpret_cast<const Element*>(g.a.values) + i / kBf16PanelWidth * kScale * g.lda;
    } else {
      Kernel::pack_a(rows, g.k, g.a + (g.a_transposed ? i : i * g.lda), g.lda, g.a_transposed, own_a);
    }
    call.a = a;
    call.c = g.c_buffer != nullptr ? g.c_buffer : g.c + i * g.ldc;
    bf16_look_ahead(g, i, call);
    {
      const FlushSubnormals flush;
      bf16_panel_product<Kernel>(rows, call, panel);
    }
    if (g.c_buffer != nullptr) {
      bf16_store_buffer<Kernel>(g, i, rows, call.ldc);
    } else {
      finish_rows(g, i, i + rows);
    }
  }
  if (g.streams) hwy::FlushStream();
}

template <class Kernel>
void bf16_pack_a_panel(std::int64_t m, std::int64_t k, const GemmOperand<float>& a, std::int64_t lda, bool a_transposed,
                       float* panel) {
  Kernel::pack_a(m, k, a, lda, a_transposed, reinterpret_cast<typename Kernel::Element*>(panel));
}
template <class Kernel>
void bf16_pack_b_panels(std::int64_t k, std::int64_t n, const GemmOperand<float>& b, std::int64_t ldb,
                        bool b_transposed, float* panels, std::int64_t panel_stride) {
  Kernel::pack_b(k, n, b, ldb, b_transposed, reinterpret_cast<typename Kernel::Element*>(panels),
                 Kernel::kElementsPerFloat * panel_stride);
}

template <class Kernel>
GemmKernels<float> bf16_kernels_of() {
  return {.tile = {.rows = kBf16PanelWidth,
                   .columns = kBf16PanelWidth,
                   .group = kBf16Depth,
                   .group_rows = kBf16Depth / Kernel::kElementsPerFloat,
                   .packed_rows = kBf16PanelWidth,
                   .packs_a = true,
                   .is_amx = false,
                   .min_tasks = 8,  // quick start: 7.6 ms a step instead of 7.7 with 4 on AMX; 12 and 24 are no faster
                   .max_thin_rows = 0},
          .multiply = &bf16_block<Kernel>,
          .pack_b = &bf16_pack_b_panels<Kernel>,
          .pack_a = &bf16_pack_a_panel<Kernel>,
          .stream = nullptr};
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_GEMM_BF16_BLOCK_INL_H_
