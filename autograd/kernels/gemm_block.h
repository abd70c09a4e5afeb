// What the two halves of GEMM say to each other: the SIMD half (gemm_kernels.cpp, one compilation a target) multiplies
// and packs one block on one thread; the plain half (gemm.cpp) cuts the product into blocks and shares them out.
#pragma once

#include <cstdint>

namespace maki::kernels {

/// One block on one thread: C [m, n] = (accumulate ? C : 0) + A [m, k] B [k, n] (+ bias). A lies in rows, lda apart, or
/// is packed, its tiles lda apart. B is packed: panels of two vectors of columns, each [k, columns] and dense,
/// panel_stride elements apart.
template <class T>
struct GemmBlock {
  std::int64_t m, n, k;
  const T* a;
  std::int64_t lda;
  bool a_packed;
  const T* b;
  std::int64_t panel_stride;
  T* c;
  std::int64_t ldc;
  bool accumulate;
  const T* bias;  // [n] or null
};

/// The register tile of the target in use: rows and columns (two vectors). B is packed in panels of `columns`, A in
/// tiles of packed_rows (whole vectors).
struct GemmTile {
  std::int64_t rows, columns, packed_rows;
};
template <class T>
GemmTile gemm_tile();

template <class T>
void gemm_multiply(const GemmBlock<T>& block);

/// Packs a block of a transposed A, element (i, p) at a[p * lda + i], as gemm_multiply() wants it for the same m: tile
/// by tile, tile_stride apart, each [k, packed_rows]. Rows of the chain can be packed by several threads.
template <class T>
void gemm_pack_a(std::int64_t m, std::int64_t k, const T* a, std::int64_t lda, T* packed, std::int64_t tile_stride);

/// Packs op(B) [k, n] into panels: element (p, j) is b[p * ldb + j], or b[j * ldb + p] with b_transposed. A short last
/// panel is filled with zeros.
template <class T>
void gemm_pack_b(std::int64_t k, std::int64_t n, const T* b, std::int64_t ldb, bool b_transposed, T* panels,
                 std::int64_t panel_stride);

}  // namespace maki::kernels
