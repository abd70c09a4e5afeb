// GEMM: C = beta C + op(A) op(B), then + bias, then an activation; row-major, float32 and float64.
//
// The promise about bits: an element of C is one chain  x = C or 0;  x = MulAdd(a[i,k], b[k,j], x) for k = 0, 1, …,
// K-1; x += bias[j]. Nothing else enters: not M, N, its place, the tile, a transposition, a pack, the batch or the
// threads. So one row multiplied alone (generation) gives the bits of that row in the whole product. MulAdd is fused on
// AVX3 and AVX2, a product and a sum on the lower targets: the promise holds within one target. With `tiles`, on
// AMX, the chain of float32 is another one, which begins with C and the bias and takes 128 steps at a time
// (gemm_amx-inl.h); the promise is the same, among products with `tiles`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace maki::kernels {

/// A chain may be cut at multiples of this, C carried from one product to the next by beta 1: the bits are the same.
inline constexpr std::int64_t kGemmChainUnit = 128;

enum class Activation : std::uint8_t { none, gelu_erf, gelu_tanh };

/// One product, or `batch` of them at constant strides. op(A) is [m, k]: `a` holds its rows, lda apart, or, with
/// a_transposed, its columns, lda apart. op(B) is [k, n] likewise. C is [m, n], rows ldc apart, and overlaps nothing
/// else.
template <class T>
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  std::int64_t lda = 0;
  bool a_transposed = false;
  const T* b = nullptr;
  std::int64_t ldb = 0;
  bool b_transposed = false;
  T* c = nullptr;
  std::int64_t ldc = 0;
  int beta = 0;             // 0: C is written, never read (k = 0 writes zeros plus bias); 1: added to
  const T* bias = nullptr;  // [n], added to every row; null: none
  const T* b_packed =
      nullptr;         // op(B) from pack_b(), for every item of the batch; then b, ldb, b_transposed are not read
  bool tiles = false;  // float32 on AMX: the faster chain of its tiles; elsewhere nothing
  Activation activation = Activation::none;  // applied to finished elements; the bits of kernels/elementwise
  T* derivative = nullptr;  // where not null: that of the activation, laid out as C (what the backward multiplies by)
  std::int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0;  // stride 0 of A or B: one matrix for all items
};

/// Bytes of scratch that gemm(g) needs: a function of sizes, flags, target and threads(); pointers are not looked at,
/// except that a pack of B makes it less.
template <class T>
std::int64_t gemm_scratch_bytes(const Gemm<T>& g);

/// `scratch`: at least gemm_scratch_bytes(g), aligned to 64. Contents before and after mean nothing.
template <class T>
void gemm(const Gemm<T>& g, std::span<std::byte> scratch);

/// Elements of the packed form of op(B) [k, n]. Only this target reads it, for products with the same `tiles`; it must
/// be aligned to 64 bytes.
template <class T>
std::int64_t packed_size(std::int64_t n, std::int64_t k, bool tiles = false);

/// Packs op(B): worth it where B serves more than one product (weights: once a step).
template <class T>
void pack_b(std::int64_t n, std::int64_t k, const T* b, std::int64_t ldb, bool b_transposed, T* packed,
            bool tiles = false);

}  // namespace maki::kernels
