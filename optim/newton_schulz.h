// The iteration of Muon that makes matrices orthogonal, approximately.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "autograd/tensor.h"

namespace maki {

/// `count` matrices [rows, cols], one behind the other.
struct MatrixStack {
  std::int64_t count, rows, cols;

  std::int64_t elements() const { return rows * cols; }  ///< of one matrix
  bool wide() const { return rows <= cols; }
  std::int64_t side() const { return std::min(rows, cols); }
};

/// Bytes of memory that orthogonalize() needs. Without `one_thread` they depend on threads().
template <class T>
std::int64_t orthogonalize_bytes(const MatrixStack& s, bool one_thread);

/// Of each matrix of the stack x, U Vᵀ of the singular value decomposition U Σ Vᵀ, approximately: five steps X ← a X +
/// (b A + c A²) X, A = X Xᵀ, of a Newton–Schulz iteration that starts with x divided by its Frobenius norm (at least
/// 1e-7, so that a matrix of zeros stays one); Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/. Its
/// coefficients a = 3.4445, b = −4.7750 and c = 2.0315 are chosen for speed: singular values end between about 0.7 and
/// 1.2. All products are those of kernels/gemm, as in a recorded op, so the bits do not depend on the number of
/// threads. With `one_thread` the products run on the calling thread alone, so that its memory suffices inside a
/// parallel region and outside. Overwrites x and the memory, which has orthogonalize_bytes() bytes, aligned to 64, and
/// returns where the result is, in one of them.
template <class T>
T* orthogonalize(const MatrixStack& s, T* x, std::byte* memory, bool one_thread);

/// What orthogonalize() makes of a copy of x [matrices · rows, cols]. Throws what stack_of() throws.
Tensor orthogonalized(const Tensor& x, std::int64_t matrices = 1);

/// The stack of this shape. Throws Error unless it has two axes, and `matrices` divide its rows.
MatrixStack stack_of(const Shape& shape, std::int64_t matrices);

}  // namespace maki
