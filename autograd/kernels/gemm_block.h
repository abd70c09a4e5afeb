// What the two halves of GEMM say to each other: the SIMD half (gemm_block.cpp, one compilation a target) multiplies
// and packs one block on one thread; the plain half (gemm.cpp) cuts the product into blocks and shares them out.
#pragma once

#include <cstdint>

#include "autograd/kernels/gemm.h"

namespace maki::kernels {

/// How B lies: packed in panels of two vectors of columns, each [k, columns] and dense, ldb apart; or in place, element
/// (p, j) at b[p * ldb + j] (rows) or b[j * ldb + p] (columns).
enum class GemmB : std::uint8_t { packed, rows, columns };

/// One block on one thread: C [m, n] = activation((accumulate ? C : 0) + A [m, k] B [k, n] (+ bias)). A element (i, p)
/// is a[i * lda + p], or a[p * lda + i] with a_transposed.
template <class T>
struct GemmBlock {
  std::int64_t m, n, k;
  const T* a;
  std::int64_t lda;
  bool a_transposed;
  const T* b;
  std::int64_t ldb;
  GemmB b_layout;
  T* c;
  std::int64_t ldc;
  bool accumulate;
  const T* bias;  // [n] or null
  Activation activation;
  T* derivative;  // [m, n], rows ldc apart, or null
  T* a_buffer;    // aligned; packed_rows * k elements where a_transposed
  T* b_buffer;    // aligned; all panels, where B is not packed
};

/// The register tile of the target in use: rows and columns (two vectors). A transposed A is packed [k, packed_rows]. A
/// B in columns that serves at most thin_rows rows, of an A in rows, is not packed.
struct GemmTile {
  std::int64_t rows, columns, packed_rows, thin_rows;
};
template <class T>
GemmTile gemm_tile();

template <class T>
void gemm_multiply(const GemmBlock<T>& block);

/// Steps [begin, end) of ceil(n / (tile.columns / 2)), each a vector of columns of C, of one product that packs
/// nothing.
template <class T>
void gemm_thin(const Gemm<T>& g, std::int64_t begin, std::int64_t end);

/// Packs op(B) [k, n] into panels: element (p, j) is b[p * ldb + j], or b[j * ldb + p] with b_transposed. A short last
/// panel is filled with zeros.
template <class T>
void gemm_pack_b(std::int64_t k, std::int64_t n, const T* b, std::int64_t ldb, bool b_transposed, T* panels,
                 std::int64_t panel_stride);

}  // namespace maki::kernels
