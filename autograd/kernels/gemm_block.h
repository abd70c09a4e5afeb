// What the two halves of GEMM say to each other: the SIMD half (gemm_block.cpp, one compilation a target) multiplies
// and packs one block on one thread; the plain half (gemm.cpp) cuts the product into blocks and shares them out.
#pragma once

#include <cstdint>

#include "autograd/kernels/gemm.h"

namespace maki::kernels {

/// How B lies: packed in panels of tile.columns, ldb apart; or in place, element (p, j) at b[p * ldb + j] (rows) or
/// b[j * ldb + p] (columns).
enum class GemmB : std::uint8_t { packed, rows, columns };

/// One block on one thread: C [m, n] = activation((accumulate ? C : 0) + A [m, k] B [k, n] (+ bias)), one chain of
/// every element, so k is at most kGemmChain. A element (i, p) is a[i * lda + p], or a[p * lda + i] with a_transposed;
/// or A is packed, its panels lda apart.
template <class T>
struct GemmBlock {
  std::int64_t m, n, k;
  const T* a;
  std::int64_t lda;
  bool a_transposed, a_packed;
  const T* b;
  std::int64_t ldb;
  GemmB b_layout;
  T* c;
  std::int64_t ldc;
  bool accumulate;
  const T* bias;  // [n] or null: added at the end, or what the chain begins with where tile.is_amx
  Activation activation;
  T* derivative;  // [m, n], rows ldc apart, or null
  T* a_buffer;    // aligned; tile.a_buffer(k, a_transposed) elements, where A is not packed
  T* b_buffer;    // aligned; all panels, where B is not packed
  bool tiles;     // as in Gemm
};

/// How the target in use multiplies: in tiles of rows by columns, whose operands are packed in panels.
struct GemmTile {
  std::int64_t rows, columns;
  std::int64_t group, group_rows;  // `group` steps of the chain take as much of a panel as group_rows rows of T would
  std::int64_t packed_rows;        // what a panel of A is wide
  bool is_amx;                     // A in rows is packed too; the first chain begins with the bias
  std::int64_t tasks;              // of a product, at least
  std::int64_t thin_rows;          // a B in columns that serves at most so many rows of an A in rows is not packed

  /// A panel of `columns` is columns * packed(k) elements of T.
  std::int64_t packed(std::int64_t k) const { return (k + group - 1) / group * group_rows; }
  std::int64_t a_buffer(std::int64_t k, bool transposed) const {
    return transposed || is_amx ? packed_rows * packed(k) : 0;
  }
};
template <class T>
GemmTile gemm_tile(bool tiles);

template <class T>
void gemm_multiply(const GemmBlock<T>& block);

/// Steps [begin, end) of ceil(n / (tile.columns / 2)), each a vector of columns of C, of one product that packs
/// nothing.
template <class T>
void gemm_thin(const Gemm<T>& g, std::int64_t begin, std::int64_t end);

/// Packs op(A) [m, k], m at most tile.rows, as a panel, where tile.is_amx.
template <class T>
void gemm_pack_a(std::int64_t m, std::int64_t k, const T* a, std::int64_t lda, bool a_transposed, T* panel);

/// Packs op(B) [k, n] into panels: element (p, j) is b[p * ldb + j], or b[j * ldb + p] with b_transposed. A short last
/// panel is filled with zeros.
template <class T>
void gemm_pack_b(std::int64_t k, std::int64_t n, const T* b, std::int64_t ldb, bool b_transposed, T* panels,
                 std::int64_t panel_stride, bool tiles);

}  // namespace maki::kernels
