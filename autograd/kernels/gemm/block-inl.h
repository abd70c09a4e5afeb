// The loop over the register tiles of one block of GEMM. Included once for every SIMD target.
#if defined(MAKI_KERNELS_GEMM_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_GEMM_BLOCK_INL_H_
#undef MAKI_KERNELS_GEMM_BLOCK_INL_H_
#else
#define MAKI_KERNELS_GEMM_BLOCK_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <hwy/highway.h>
#include <type_traits>

#include "autograd/core/parallel.h"
#include "autograd/kernels/gemm/activate-inl.h"
#include "autograd/kernels/gemm/block.h"
#include "autograd/kernels/gemm/pack-inl.h"
#include "autograd/kernels/gemm/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Cuts m rows into tiles of nearly equal height, each of at most kGemmTileRows rows.
struct RowTiles {
  explicit RowTiles(std::int64_t m) : count((m + kGemmTileRows - 1) / kGemmTileRows), rows(m) {}
  std::int64_t begin(std::int64_t t) const { return rows * t / count; }
  std::int64_t count, rows;
};

/// Packs what cannot be read in place: all of a column-major B; of a row-major B its last panel, if that has fewer
/// columns than a whole panel.
template <class T>
void prepare_panels(const GemmBlock<T>& g) {
  constexpr std::int64_t kPanelColumns = 2 * hn::MaxLanes(GemmVec<T>());
  const std::int64_t rest = g.n % kPanelColumns, whole = g.n - rest;
  if (g.b_layout == GemmLayoutB::column_major)
    pack_panels(g.k, g.n, g.b.values, g.ldb, true, g.b_buffer, g.k * kPanelColumns);
  if (g.b_layout == GemmLayoutB::row_major && rest != 0) {
    pack_panels(g.k, rest, g.b.values + whole, g.ldb, false, g.b_buffer + whole * g.k, g.k * kPanelColumns);
  }
}

/// Sets from where a row tile reads the panel of B that begins at column j. If B is row-major, the first row tile reads
/// the panel in place and packs it for the row tiles below, if there are any.
template <class T>
HWY_INLINE void set_b_source(const GemmBlock<T>& g, bool first, bool last, std::int64_t j, GemmTileCall<T>& call) {
  constexpr std::int64_t kPanelColumns = 2 * hn::MaxLanes(GemmVec<T>());
  call.b_copy = nullptr;
  call.b_is_packed = true;
  call.ldb = kPanelColumns;
  if (g.b_layout == GemmLayoutB::packed) {
    call.b = g.b.values + j / kPanelColumns * g.ldb;
  } else if (g.b_layout == GemmLayoutB::row_major && first && g.n - j >= kPanelColumns) {
    call.b = g.b.values + j;
    call.ldb = g.ldb;
    call.b_is_packed = false;
    call.b_copy = last ? nullptr : g.b_buffer + j * g.k;
  } else {
    call.b = g.b_buffer + j * g.k;
  }
}

/// Sets from where a tile reads its rows of A, which begin at row i. If A is transposed, the tile at the first panel of
/// columns reads the rows in place and packs them for the panels to the right, if there are any.
template <class T>
HWY_INLINE void set_a_source(const GemmBlock<T>& g, std::int64_t i, bool first, bool last, GemmTileCall<T>& call) {
  call.a = g.a.values + (g.a_transposed ? i : i * g.lda);
  call.lda = g.lda;
  call.a_copy = g.a_transposed && !last ? g.a_buffer : nullptr;
  if (g.a_transposed && !first) {
    call.a = g.a_buffer;
    call.lda = kPackedRows<T>;
    call.a_copy = nullptr;
  }
}

/// Reads an array [rows, columns], rows ld apart, into the level-2 cache, a part of it at each of `calls` calls of
/// some().
template <class T>
class ReadAhead {
 public:
  ReadAhead(const T* begin, std::int64_t rows, std::int64_t columns, std::int64_t ld, std::int64_t calls)
      : row_(begin),
        rows_(rows),
        columns_(columns),
        ld_(ld),
        lines_(ceil_div(rows * ceil_div(columns, kLine), calls)) {}
  HWY_INLINE void some() {
    for (std::int64_t line = 0; line < lines_ && rows_ > 0; ++line) {
      __builtin_prefetch(row_ + column_, 0, 2);
      column_ += kLine;
      if (column_ < columns_) continue;
      column_ = 0;
      row_ += ld_;
      --rows_;
    }
  }

 private:
  static constexpr std::int64_t kLine = 64 / std::int64_t{sizeof(T)};
  const T* row_;
  std::int64_t rows_, columns_, ld_, lines_, column_ = 0;
};

/// What row tile t reads ahead of a transposed A, in `calls` parts. A row tile uses a part of a cache line of every row
/// of A, so the lines of kTilesAhead tiles are read together, and each of the tiles before them reads its share of the
/// rows. (A row-major A, of which a tile reads long pieces, arrives in time without this.)
template <class T>
ReadAhead<T> read_next_a(const GemmBlock<T>& g, const RowTiles& tiles, std::int64_t t, std::int64_t calls) {
  constexpr std::int64_t kTilesAhead = 8;
  const std::int64_t first = t - t % kTilesAhead, next = std::min(first + kTilesAhead, tiles.count);
  const bool in_block = next < tiles.count;
  const T* const from = in_block ? g.a.values + tiles.begin(next) : g.next_a;
  if (!g.reads_next_a || from == nullptr) return {nullptr, 0, 0, 0, calls};
  const std::int64_t columns = in_block ? tiles.begin(std::min(next + kTilesAhead, tiles.count)) - tiles.begin(next)
                                        : tiles.begin(std::min(kTilesAhead, tiles.count));
  const std::int64_t share = ceil_div(g.k, next - first), p = std::min(g.k, (t - first) * share);
  return {from + p * g.lda, std::min(share, g.k - p), columns, g.lda, calls};
}

/// What this thread packs of B after the block, in `calls` parts.
template <class T>
ReadAhead<T> read_next_b(const GemmBlock<T>& g, std::int64_t calls) {
  if (g.next_b == nullptr) return {nullptr, 0, 0, 0, calls};
  if (g.b_layout == GemmLayoutB::column_major) return {g.next_b, g.n, g.k, g.ldb, calls};
  return {g.next_b, g.k, g.n, g.ldb, calls};
}

/// C = A B for one block. Row tiles are the outer loop: the rows of A of one tile stay in the level-1 cache while the
/// panels of B stream past them from the level-2 cache.
template <class T>
void gemm_block(const GemmBlock<T>& g) {
  constexpr std::int64_t kLanes = hn::MaxLanes(GemmVec<T>()), kPanelColumns = 2 * kLanes;
  const RowTiles tiles(g.m);
  prepare_panels(g);
  GemmTileCall<T> call{};
  call.k = g.k;
  call.ldc = g.ldc;
  call.accumulate = g.accumulate;
  const std::int64_t panels = ceil_div(g.n, kPanelColumns);
  ReadAhead<T> ahead_of_b = read_next_b(g, tiles.count * panels);
  for (std::int64_t t = 0; t < tiles.count; ++t) {
    const std::int64_t i = tiles.begin(t), rows = tiles.begin(t + 1) - i;
    ReadAhead<T> ahead_of_a = read_next_a(g, tiles, t, panels);
    const std::int64_t first = std::max<std::int64_t>(0, i + g.diagonal) / kPanelColumns * kPanelColumns;
    for (std::int64_t j = first; j < g.n; j += kPanelColumns) {
      ahead_of_a.some();
      ahead_of_b.some();
      const std::int64_t columns = std::min(kPanelColumns, g.n - j), vecs = columns <= kLanes ? 1 : 2;
      const GemmTileFunction<T> tile = gemm_tile_of<T>(rows, vecs, g.a_transposed);
      set_a_source(g, i, j == first, j + columns == g.n, call);
      set_b_source(g, t == 0, tiles.count == 1, j, call);
      call.c = g.c + i * g.ldc + j;
      call.bias = g.bias != nullptr ? g.bias + j : nullptr;
      if (columns == vecs * kLanes) {
        tile(call);
      } else {
        gemm_edge(tile, rows, columns, call);
      }
    }
    finish_rows(g, i, i + rows);
  }
}

template <class T>
void pack_block_b(std::int64_t k, std::int64_t n, const GemmOperand<T>& b, std::int64_t ldb, bool b_transposed,
                  T* panels, std::int64_t panel_stride) {
  pack_panels(k, n, b.values, ldb, b_transposed, panels, panel_stride);
}

/// The kernels of this target except `stream`, which is compiled separately. With 14 rows, a tile's part of A is 28 KiB
/// per chain of 512 float32 and stays in the level-1 cache.
template <class T>
GemmKernels<T> block_kernels() {
  return {.tile = {.rows = kGemmTileRows,
                   .columns = 2 * hn::MaxLanes(GemmVec<T>()),
                   .group = 1,
                   .group_rows = 1,
                   .packed_rows = kPackedRows<T>,
                   .packs_a = false,
                   .is_amx = false,
                   .min_tasks = 16,
                   .max_thin_rows = std::is_same_v<T, float> ? kMaxThinRows : 0},
          .multiply = &gemm_block<T>,
          .pack_b = &pack_block_b<T>,
          .pack_a = nullptr,
          .stream = nullptr};
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_GEMM_BLOCK_INL_H_
