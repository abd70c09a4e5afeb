// GEMM: C = beta C + op(A) op(B), then + bias, then an activation; row-major, float32 and float64.
//
// The promise about bits: the K products of an element of C are summed in chains of 512. A chain begins with 0 and goes
// on with x = MulAdd(a[i,k], b[k,j], x) in ascending order of k; the element is C or nothing, plus one chain after the
// other, plus bias[j]. Nothing else enters: not M, N, its place, the tile, a transposition, a pack, the batch or the
// threads. So one row multiplied alone (generation) gives the bits of that row in the whole product. MulAdd is fused on
// AVX3 and AVX2, a product and a sum on the lower targets: the promise holds within one target. With `tiles`, on AMX, a
// chain of float32 takes 128 steps at a time (gemm_amx-inl.h), and the first one begins with the bias; the promise is
// the same, among products with `tiles`.
//
// Chains of a fixed length keep the digits of long sums: the rounding error of a single chain of random numbers grows
// as √K, that of chains of L as √(L + K/L). At K = 65,536 that is 4.5e-7 of the result instead of 4.6e-6.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace maki::kernels {

/// The length of a chain. A product may be cut along K at multiples of it, C carried from one part to the next by
/// beta 1: the bits are the same.
inline constexpr std::int64_t kGemmChain = 512;

/// Whether a product of these sizes, in any order, is faster on tiles, by counting work: packing an operand costs about
/// as much as multiplying it by 20 columns, and what falls short of a tile is filled up. A rule of the whole product:
/// its parts, and the products of its backward, have the flag `tiles` that it has.
constexpr bool tiles_pay(std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t least = std::min({m, n, k}), most = std::max({m, n, k}), middle = m + n + k - least - most;
  return least >= 32 && middle >= 64;
}

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

/// Bytes of scratch that gemm(g) needs: a function of the sizes and flags of g, the target, threads(), and whether the
/// caller is inside a parallel region, where a product runs on the calling thread alone. Of the pointers only b_packed
/// matters: a prepacked B makes it less.
/// Requires: call it from the same parallel context (inside or outside a parallel region) as gemm(), with the same
/// target and threads(). What it returns outside a region is enough inside one as well; what it returns inside may be
/// too little outside, and gemm() then throws.
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
