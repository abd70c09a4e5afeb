// The interface between the two halves of GEMM. The SIMD half, compiled once per target, multiplies and packs one block
// on one thread (vector_f32.cpp, vector_f64.cpp and amx_block.cpp); the portable half (product.h) cuts the product into
// blocks and distributes them over the threads.
#pragma once

#include <cstdint>

#include "autograd/kernels/gemm/gemm.h"

namespace maki::kernels {

/// The layout of B: packed in panels of tile.columns columns, ldb elements apart; or in place, with element (p, j) at
/// b[p * ldb + j] (row_major) or b[j * ldb + p] (column_major).
enum class GemmLayoutB : std::uint8_t { packed, row_major, column_major };

/// One block of a product, computed by one thread: C [m, n] = activation((accumulate ? C : 0) + A [m, k] B [k, n] (+
/// bias)). It is one reduction chain of every element, so k <= kGemmChainLength, or, where operands are rounded, the
/// continuation of one that C holds. Element (i, p) of A is a[i * lda + p], or a[p * lda + i] with a_transposed; or,
/// with a_packed (only if tile.packs_a), A is packed in panels that are lda elements apart. The caller sets
/// `accumulate` for all blocks along K but the first (or for all, if beta is 1), and `activation` for the last one
/// only.
template <class T>
struct GemmBlock {
  std::int64_t m, n, k;
  GemmOperand<T> a;
  std::int64_t lda;
  bool a_transposed, a_packed;
  bool packs_all_a;  // a_buffer has room for all rows of A (transposed, with k steps), which are packed at once
  GemmOperand<T> b;
  std::int64_t ldb;
  GemmLayoutB b_layout;
  T* c;
  std::int64_t ldc;
  bool accumulate;
  // Of row i, the columns from i + diagonal on are wanted (at most -m: all). Kernels may ignore it.
  std::int64_t diagonal;
  const T* bias;  // [n] or null; given with the last chain, and added at its end; with tile.packs_a, given with the
                  // first chain, which starts at it
  GemmActivation activation;
  T* derivative;        // [m, n], rows ldc apart, or null
  const T* factor;      // likewise; given with the last block along K only
  BFloat16* c_rounded;  // likewise: receives the finished elements, rounded; c is then null
  // What this thread multiplies after the block is read into the caches beside the arithmetic: of A, which is then
  // transposed, if reads_next_a; of B, if next_b is not null. next_a may be null: not known.
  bool reads_next_a;
  const T *next_a, *next_b;
  // Scratch of the calling thread for this block alone, aligned to 64 bytes. For packing A, one tile at a time, unless
  // it is packed: tile.a_buffer_size(k, a_transposed) elements. For packing B unless it is packed: all its panels.
  T *a_buffer, *b_buffer;
  T* c_buffer;  // for finished rows of C, one panel of A high, if they are rounded or stored past the caches; else null
  bool streams;  // what is finished in c_buffer, and the derivative, are stored past the caches
};

/// The register tile of a target, and the layout of the panels that feed it.
struct GemmTile {
  std::int64_t rows, columns;      // of the tile; a panel of B is `columns` wide
  std::int64_t group, group_rows;  // in a panel, `group` steps of K take the space of group_rows rows of T
  std::int64_t packed_rows;        // width of a panel of A
  bool packs_a;                    // a row-major A must be packed as well, and the first chain starts at the bias
  bool is_amx;                     // threads need an amx::TileConfig
  std::int64_t min_tasks;          // fewest tasks that a product is cut into, if its size allows, by a team of any size
                                   // (GemmPlan wants two per thread as well)
  std::int64_t max_thin_rows;      // with a row-major A of at most this many rows, a transposed B is not packed

  /// The depth of a packed panel in rows of T: a panel of B takes columns * packed_depth(k) elements.
  std::int64_t packed_depth(std::int64_t k) const { return (k + group - 1) / group * group_rows; }
  /// Elements of T that packing one tile of A takes; 0 if A is read in place.
  std::int64_t a_buffer_size(std::int64_t k, bool transposed) const {
    return transposed || packs_a ? packed_rows * packed_depth(k) : 0;
  }
};

/// The functions of one target for products of T, on its vector units or on AMX. Each runs on the calling thread alone
/// and throws nothing. Thread safety: they may be called on several threads at once, for different outputs and scratch.
template <class T>
struct GemmKernels {
  GemmTile tile;
  /// Computes one block, of any number of register tiles.
  void (*multiply)(const GemmBlock<T>& block);
  /// Packs op(B) [k, n] into panels, panel_stride elements apart: element (p, j) is b[p * ldb + j], or b[j * ldb + p]
  /// with b_transposed. The last panel is padded with zeros (on AMX, and where operands are rounded, only as far as
  /// register tiles read it, but every panel to a multiple of tile.group steps).
  void (*pack_b)(std::int64_t k, std::int64_t n, const GemmOperand<T>& b, std::int64_t ldb, bool b_transposed,
                 T* panels, std::int64_t panel_stride);
  /// Packs op(A) [m, k], m <= tile.rows, into one panel; rows beyond m may be left uninitialized. Null unless
  /// tile.packs_a.
  void (*pack_a)(std::int64_t m, std::int64_t k, const GemmOperand<T>& a, std::int64_t lda, bool a_transposed,
                 T* panel);
  /// Computes steps [begin, end) of a product that packs nothing: A row-major, B transposed, 1 <= m <=
  /// tile.max_thin_rows. Each of its ceil(n / (tile.columns / 2)) steps is one vector of columns of C, which need not
  /// be adjacent (thin-inl.h). `g` is one item of a batch: its batch and strides are ignored. Null if
  /// tile.max_thin_rows is 0.
  void (*stream)(const Gemm<T>& g, std::int64_t begin, std::int64_t end);
};

/// The kernels of the target in use for its vector units.
template <class T>
GemmKernels<T> vector_kernels();
/// The kernels for AMX; on a target without AVX-512 all null. Requires: uses_amx(), and that every thread that calls
/// multiply() holds an amx::TileConfig.
GemmKernels<float> amx_kernels();

/// The kernels for products that round their operands. Requires: as for amx_kernels(), if tile.is_amx.
GemmKernels<float> bf16_kernels();

/// The member `stream` of vector_kernels<float>(). It is compiled in a file of its own, because both parts take long to
/// compile.
decltype(GemmKernels<float>::stream) stream_kernel();

}  // namespace maki::kernels
