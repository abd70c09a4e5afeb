// GEMM: C = activation(beta C + op(A) op(B) + bias); row-major, float32 and float64.
//
// The promise about bits: the K products of an element of C are summed in reduction chains of 512. A chain starts at 0
// and continues with x = MulAdd(a[i,k], b[k,j], x) in ascending order of k; the element is beta C, plus the chains in
// order, plus bias[j]. Its bits depend on nothing else: not on M, N, its position, the register tile, transposition,
// packing, the batch or the number of threads. So a row multiplied alone (generation) gets the bits that it has in the
// whole product. MulAdd is fused on avx3 and avx2 and a rounded product plus a sum on sse4 and floor, so the promise
// holds within one target. On AMX (see runs_on_amx()) a chain of float32 has another order of summation
// (amx_tile-inl.h) and the first chain starts at the bias; the same promise holds among products on AMX.
//
// Chains of a fixed length keep long sums accurate: the rounding error of one chain of random numbers grows as √K, that
// of chains of length L as √(L + K/L). At K = 65,536 that is about 4.5e-7 of the result instead of 4.6e-6.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "autograd/core/bfloat16.h"
#include "autograd/core/int8_matrix.h"

namespace maki::kernels {

/// The length of a reduction chain, in steps of K. With 512, the rows of A stay in the level-1 cache and the rounding
/// error of float32 stays below 6e-7 for every K up to 65,536. The result's bits depend on it. A product without bias
/// or activation may be cut along K at multiples of it, each part after the first adding to C with beta 1, without
/// changing a bit (if `whole` lets all parts run on AMX or none).
inline constexpr std::int64_t kGemmChainLength = 512;

/// The most steps K of a product whose result is rounded (Gemm::c_rounded): sums must not leave the caches before they
/// are complete.
inline constexpr std::int64_t kMaxRoundedResultDepth = 1536;

struct GemmSizes {
  std::int64_t m = 0, n = 0, k = 0;
};

/// Whether a product of these three sizes, in any order, is faster on AMX tiles, which split and pack each operand
/// first. Measured with `scripts/bench.sh tiles` on an Intel Xeon with AMX: with sizes of 64 × 64 × 64 to 64 × 64 ×
/// 65,536, tiles reached 0.63 to 1.3 times the speed of the vector units, with 48 × 96 × 4096 0.62 to 1.2, and with 64
/// × 128 × 768 0.80 to 1.17, depending on what is transposed. With no size below 96 and two of 128 or more, they
/// reached 1.07 to 1.77.
constexpr bool amx_pays(const GemmSizes& s) {
  const std::int64_t least = std::min({s.m, s.n, s.k}), most = std::max({s.m, s.n, s.k});
  return least >= 96 && s.m + s.n + s.k - least - most >= 128;
}

enum class GemmActivation : std::uint8_t { none, gelu, gelu_tanh };

/// An operand in memory: numbers of type T or, if `rounded` is not null, bfloat16 numbers, which only a product that
/// rounds its operands may have, or, if `int8` is not null, a matrix [n, k] of 8-bit numbers. All null: absent.
template <class T>
struct GemmOperand {
  GemmOperand() = default;
  GemmOperand(const T* x) : values(x) {}          // NOLINT(google-explicit-constructor): a plain array is an operand
  GemmOperand(const BFloat16* x) : rounded(x) {}  // NOLINT(google-explicit-constructor)
  GemmOperand(const Int8Matrix* x) : int8(x) {}   // NOLINT(google-explicit-constructor)
  const T* values = nullptr;
  const BFloat16* rounded = nullptr;
  const Int8Matrix* int8 = nullptr;

  /// The operand that begins `elements` later. Requires: `int8` is null.
  GemmOperand operator+(std::int64_t elements) const {
    return rounded != nullptr ? GemmOperand(rounded + elements) : GemmOperand(values + elements);
  }
  GemmOperand& operator+=(std::int64_t elements) { return *this = *this + elements; }
};

/// One product, or `batch` of them at constant strides. op(A) is [m, k]: element (i, p) is a[i * lda + p], or
/// a[p * lda + i] with a_transposed. op(B) is [k, n]: element (p, j) is b[p * ldb + j], or b[j * ldb + p] with
/// b_transposed. C is [m, n], its rows ldc apart, and overlaps no other array. The items of C in a batch follow one
/// another without overlap, |stride_c| >= (m - 1) ldc + n. Leading dimensions and strides count elements.
template <class T>
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  GemmOperand<T> a{};
  std::int64_t lda = 0;
  bool a_transposed = false;
  /// A matrix of 8-bit numbers is B transposed, whatever ldb, of a product of floats that is not recorded, of one item,
  /// with a row-major A, and without derivative or factor. Its bits are those of the floats that it stands for.
  GemmOperand<T> b{};
  std::int64_t ldb = 0;
  bool b_transposed = false;
  T* c = nullptr;
  std::int64_t ldc = 0;
  int beta = 0;  // 0: C is overwritten, never read (k = 0 writes the bias or zeros); 1: added to C
  /// Of a square C, only the diagonal and what is right of it are wanted: the rest may be left as it is, and on the
  /// vector units most of it is, which saves nearly half of the time. Only without activation and factor. Of X Xᵀ, Xᵀ
  /// X, or the square of a matrix with symmetric bits, without beta and bias, the whole product would be symmetric in
  /// every bit, except on AMX.
  bool upper = false;
  /// The calling thread computes it alone, as it does inside a parallel region. Not with 8-bit numbers.
  bool one_thread = false;
  const T* bias = nullptr;  // [n], added to every row; null: none
  /// op(B) from pack_b(), shared by all items of the batch; if not null, b, ldb and b_transposed are ignored.
  const T* b_packed = nullptr;
  /// A product of a recorded op or of its backward, which may run on AMX; see runs_on_amx().
  bool recorded = false;
  /// float32: both operands are rounded to bfloat16. The sums stay float32, but in an order of their own, which depends
  /// on whether the CPU has instructions for bfloat16 (bf16_block-inl.h).
  bool rounds_operands = false;
  /// If this product is a part of a larger one: the sizes of the larger one, so that all its parts run on AMX or none.
  /// m = 0: it is not a part.
  GemmSizes whole{};
  /// Applied to finished elements, with the bits of kernels/elementwise.
  GemmActivation activation = GemmActivation::none;
  T* derivative = nullptr;  // output, laid out like C: derivative of the activation, for the backward pass; null: none
  /// [m, n], laid out like C: finished elements are multiplied by it; null: none. Only without activation.
  const T* factor = nullptr;
  /// If not null, the result is stored here, rounded to bfloat16 as operands are, and C is ignored. Only with
  /// rounds_operands, for one item, without beta or a transposed A, and for at most kMaxRoundedResultDepth steps.
  BFloat16* c_rounded = nullptr;
  std::int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0;  // stride_a or stride_b 0: shared by all items
};

/// Bytes of scratch that gemm(g) needs: a function of the sizes and flags of g, of whether stride_b is 0, the target,
/// threads(), and whether the caller is inside a parallel region, where a product runs on the calling thread alone. Of
/// the pointers only b_packed and b.int8 matter: a prepacked B needs less scratch, and 8-bit numbers become floats. 0
/// if m, n or batch is not positive; nothing is checked.
/// Requires: call it from the same parallel context (inside or outside a parallel region) as gemm(), with the same
/// target and threads(). The size returned outside a region is enough inside one as well; the size returned inside may
/// be too small outside, and gemm() then throws.
template <class T>
std::int64_t gemm_scratch_bytes(const Gemm<T>& g);

/// Computes the product. `scratch`: at least gemm_scratch_bytes(g) bytes, aligned to 64 bytes; its contents are
/// meaningless before and after. Throws Error, before C is touched, if MAKI_TARGET is invalid, a size is negative, beta
/// is not 0 or 1, a leading dimension or stride_c is too small, a derivative is wanted without an activation or a
/// factor with one, the upper part of a C that is not square or has either, g has bfloat16 numbers where it may not, or
/// the scratch is too small or misaligned. Nothing else is checked. If m, n or batch is 0, nothing is computed.
/// Thread safety: may be called from several threads at once, each with its own scratch and C.
template <class T>
void gemm(const Gemm<T>& g, std::span<std::byte> scratch);

/// Whether gemm(g) runs on AMX with float32 operands, each split into three: if g is recorded, in float32, does not
/// round its operands and is large enough that AMX pays (amx_pays() of `whole` or else of m, n and k, whatever the
/// batch), and the target is amx. Products of a forward pass and of its backward have the same three sizes and so run
/// alike.
template <class T>
bool runs_on_amx(const Gemm<T>& g);

/// Elements of T in the packed form of op(B) of g. It must be aligned to 64 bytes, which is not checked, and is valid
/// for products with the same n and k on the target that packed it, if they agree with g in runs_on_amx().
template <class T>
std::int64_t packed_size(const Gemm<T>& g);

/// Packs op(B) of g into `packed`, packed_size(g) elements. It pays off if B is used in more than one product, as
/// weights are within a step. Throws Error if MAKI_TARGET is invalid, n or k is negative, or ldb is too small.
template <class T>
void pack_b(const Gemm<T>& g, T* packed);

}  // namespace maki::kernels
