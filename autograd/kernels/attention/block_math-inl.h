// What forward and backward attention share: the register-tiled product that does all matrix arithmetic, 2^x, the
// online softmax of a row, and dropout of a row of weights.
//
// All products of attention are C[r][c] (+)= Σ_i A(r, i) · B[i][c], vectorized over c. For the scores and dp, c runs
// over keys (B is kᵀ or vᵀ, packed once per block); for y, dq, dk and dv it runs over columns of the head. Every
// element is one reduction chain over i in order, whatever register tile it falls into.
//
// Included by kernel files between foreach_target and their HWY_BEFORE_NAMESPACE; compiled once per target.
#if defined(MAKI_KERNELS_BLOCK_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_BLOCK_MATH_INL_H_
#undef MAKI_KERNELS_BLOCK_MATH_INL_H_
#else
#define MAKI_KERNELS_BLOCK_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include "autograd/kernels/attention/pack-inl.h"
#include "autograd/kernels/attention/tile.h"
#include "autograd/kernels/simd/lane_sums-inl.h"
#include "autograd/kernels/simd/lanes-inl.h"
#include "autograd/kernels/simd/math-inl.h"
#include "autograd/kernels/simd/philox-inl.h"
#include "autograd/kernels/simd/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of a register tile. 8 × 2 vectors make 16 accumulators, twice the number that hides the latency of fused
// multiply-adds; where there are only 16 registers, 4 × 2 leave room for the operands.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64  // in Highway, lower numbers are better targets
inline constexpr int kAttentionTileRows = 8;    // 16 sums in 32 registers
#else
inline constexpr int kAttentionTileRows = 4;  // 8 sums in 16 registers
#endif

enum class Store { set, add, scale_add };  // C = sum, C += sum, C = C · alpha[row] + sum

/// One register tile: C [R, V vectors] = A B, combined with C as kStore says. A is [R, depth] with rows lda apart or,
/// with kAcross, transposed: [depth, R]. B is [depth, V vectors]; the rows of B and C are ldb and ldc apart.
template <int R, int V, bool kAcross, Store kStore, class T>
HWY_INLINE void register_tile(std::int64_t depth, const T* HWY_RESTRICT a, std::int64_t lda, const T* HWY_RESTRICT b,
                              std::int64_t ldb, T* HWY_RESTRICT c, std::int64_t ldc, const T* alpha) {
  const hn::ScalableTag<T> d;
  using Vec = hn::Vec<decltype(d)>;
  constexpr std::int64_t kLanes = max_lanes<T>();
  Vec sum[R][V];
  MAKI_UNROLL for (int r = 0; r < R; ++r) { MAKI_UNROLL for (int v = 0; v < V; ++v) sum[r][v] = hn::Zero(d); }
  std::int64_t i = 0;
  if constexpr (kMultipliesByLane && !kAcross) {
    for (; i + kLanes <= depth; i += kLanes) {
      Vec rows[kLanes][V];
      MAKI_UNROLL for (int j = 0; j < kLanes; ++j) {
        MAKI_UNROLL for (int v = 0; v < V; ++v) rows[j][v] = hn::LoadU(d, b + (i + j) * ldb + v * kLanes);
      }
      add_steps_by_lane([&](int r) HWY_ATTR { return hn::LoadU(d, a + r * lda + i); }, rows, sum);
    }
  }
  const auto add_step = [&](std::int64_t step) HWY_ATTR {
    Vec row[V];
    MAKI_UNROLL for (int v = 0; v < V; ++v) row[v] = hn::LoadU(d, b + step * ldb + v * kLanes);
    if constexpr (kMultipliesByLane && kAcross && R % kLanes == 0) {
      add_step_by_lane(a + step * lda, row, sum);
      return;
    }
    MAKI_UNROLL for (int r = 0; r < R; ++r) {
      const Vec factor = hn::Set(d, kAcross ? a[step * lda + r] : a[r * lda + step]);
      MAKI_UNROLL for (int v = 0; v < V; ++v) sum[r][v] = hn::MulAdd(factor, row[v], sum[r][v]);
    }
  };
  if constexpr (kMultipliesByLane && kAcross) {  // four steps a round: fewer instructions count and move pointers
    for (; i + 4 <= depth; i += 4) {
      MAKI_UNROLL for (int j = 0; j < 4; ++j) add_step(i + j);
    }
  }
  for (; i < depth; ++i) add_step(i);
  MAKI_UNROLL for (int r = 0; r < R; ++r) {
    MAKI_UNROLL for (int v = 0; v < V; ++v) {
      T* const at = c + r * ldc + v * kLanes;
      if constexpr (kStore == Store::add) sum[r][v] = hn::Add(hn::LoadU(d, at), sum[r][v]);
      if constexpr (kStore == Store::scale_add) {
        sum[r][v] = hn::MulAdd(hn::LoadU(d, at), hn::Set(d, alpha[r]), sum[r][v]);
      }
      hn::StoreU(sum[r][v], d, at);
    }
  }
}

// What product() and score_product() have in common.
template <int R, bool kAcross, Store kStore, class T>
HWY_INLINE void product_inline(std::int64_t cols, std::int64_t depth, const T* a, std::int64_t lda, const T* b,
                               std::int64_t ldb, T* c, std::int64_t ldc, const T* alpha) {
  constexpr std::int64_t kLanes = max_lanes<T>();
  constexpr int kVecs = R == 1 ? 4 : 2;  // with a single row, only its columns give independent accumulators
  std::int64_t at = 0;
  for (; at + kVecs * kLanes <= cols; at += kVecs * kLanes) {
    register_tile<R, kVecs, kAcross, kStore>(depth, a, lda, b + at, ldb, c + at, ldc, alpha);
  }
  for (; at < cols; at += kLanes) register_tile<R, 1, kAcross, kStore>(depth, a, lda, b + at, ldb, c + at, ldc, alpha);
}

/// The product of R rows of A with B, C [R, cols], where cols is a multiple of the vector size.
template <int R, bool kAcross, Store kStore, class T>
HWY_NOINLINE void product(std::int64_t cols, std::int64_t depth, const T* a, std::int64_t lda, const T* b,
                          std::int64_t ldb, T* c, std::int64_t ldc, const T* alpha = nullptr) {
  product_inline<R, kAcross, kStore>(cols, depth, a, lda, b, ldb, c, ldc, alpha);
}

/// The product of R rows of A with B [depth, cols] and C [R, cols] whose rows are kKeyBlock apart, as those of scores
/// are: a constant saves address arithmetic.
template <int R, class T>
HWY_NOINLINE void score_product(std::int64_t cols, std::int64_t depth, const T* a, std::int64_t lda, const T* b, T* c) {
  constexpr const T* kNoAlpha = nullptr;
  product_inline<R, false, Store::set>(cols, depth, a, lda, b, kKeyBlock, c, kKeyBlock, kNoAlpha);
}

/// 2^x for x <= 0: exactly 1 at 0; 0 for x < −125.5 (float64: −1021.5), where it would be less than √2 times the
/// smallest normal number, so also at −Inf; NaN stays NaN. 2^f on |f| <= 1/2 is a minimax polynomial with constant
/// term 1 (Remez in 50 digits; relative error 2.6e-9 for float, 1.8e-17 for double). The argument of a softmax is never
/// positive, so the upper end of the range needs no care: 13 operations, where Exp takes 19.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp2Negative(D d, V x) {
  using T = hn::TFromD<D>;
  constexpr bool kIsFloat = sizeof(T) == 4;
  const hn::RebindToUnsigned<D> du;
  // Adding 1.5·2^23 (float64: 1.5·2^52) leaves the nearest integer, plus the exponent bias, in the low bits.
  const V magic = hn::Set(d, static_cast<T>(kIsFloat ? 12582912.0 + 127 : 6755399441055744.0 + 1023));
  const V shifted = hn::Add(x, magic);
  const V f = hn::Sub(x, hn::Sub(shifted, magic));
  V p;
  if constexpr (kIsFloat) {
    p = Polynomial(d, f, 1, 0.693147214968027899, 0.240226527828877374, 0.0555031055101379717, 0.00961769297299306232,
                   0.00134066439023517592, 0.000155946781613266193);
  } else {
    p = Polynomial(d, f, 1, 0.693147180559945697, 0.24022650695910098, 0.0555041086647903946, 0.00961812910760700238,
                   0.00133335581534399647, 0.000154035304415721303, 1.52527273851938682e-05, 1.32154426753298221e-06,
                   1.01806476592341389e-07, 7.07257041281442351e-09, 4.07807192958833667e-10);
  }
  constexpr int kMantissaBits = kIsFloat ? 23 : 52;
  const V power = hn::BitCast(d, hn::ShiftLeft<kMantissaBits>(hn::BitCast(du, shifted)));
  const auto tiny = hn::Lt(x, hn::Set(d, static_cast<T>(kIsFloat ? -125.5 : -1021.5)));
  return hn::IfThenZeroElse(tiny, hn::Mul(p, power));
}

/// The running maximum of one row after a block: the larger of `old` and its scores s of the `visible` keys. It may
/// ignore a NaN, whose weight is NaN whatever the maximum is.
template <class T>
HWY_INLINE T row_max(const T* s, std::int64_t visible, T old) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kLanes = max_lanes<T>();
  auto most = hn::Set(d, old);
  std::int64_t j = 0;
  for (; j + kLanes <= visible; j += kLanes) most = hn::Max(most, hn::LoadU(d, s + j));
  if (j < visible) {
    const auto seen = hn::FirstN(d, static_cast<std::size_t>(visible - j));
    most = hn::Max(most, hn::IfThenElse(seen, hn::LoadU(d, s + j), most));
  }
  return hn::GetLane(hn::MaxOfLanes(d, most));
}

/// The lanes of a row's sum of weights, in scratch memory: weight j is in lane j mod kPaddingMultiple.
template <class T>
using WeightSums = LaneSums<T, kPaddingMultiple>;

/// Replaces the scores s of one row by weights p = 2^(s − max), with zeros from `visible` to `width` (which is rounded
/// up to whole vectors), and updates the lanes of the row's sum: lane_sum = lane_sum · alpha + p.
template <class T>
HWY_INLINE void row_weights(T* s, std::int64_t visible, std::int64_t width, T max, T alpha, T* lane_sum) {
  using Sums = WeightSums<T>;
  const WholeVector<T> whole;
  const auto shift = hn::Set(whole.d, max);
  Sums sums;
  const auto weights = [&](std::int64_t j)
                           HWY_ATTR { return Exp2Negative(whole.d, hn::Sub(hn::LoadU(whole.d, s + j), shift)); };
  std::int64_t j = 0;
  for (; j + kPaddingMultiple <= visible; j += kPaddingMultiple) {
    MAKI_UNROLL for (int k = 0; k < Sums::kVectors; ++k) {
      const auto p = weights(j + k * Sums::kVectorLanes);
      sums.sum[k] = hn::Add(sums.sum[k], p);
      hn::StoreU(p, whole.d, s + j + k * Sums::kVectorLanes);
    }
  }
  if (j < visible) {  // the rows of scores have room for whole groups
    MAKI_UNROLL for (int k = 0; k < Sums::kVectors; ++k) {
      const std::int64_t at = j + k * Sums::kVectorLanes;
      if (at >= visible) {
        hn::StoreU(hn::Zero(whole.d), whole.d, s + at);
        continue;
      }
      auto p = weights(at);
      if (at + Sums::kVectorLanes > visible) {
        p = hn::IfThenElseZero(hn::FirstN(whole.d, static_cast<std::size_t>(visible - at)), p);
      }
      sums.sum[k] = hn::Add(sums.sum[k], p);
      hn::StoreU(p, whole.d, s + at);
    }
    j += kPaddingMultiple;
  }
  for (; j < width; j += Sums::kVectorLanes) hn::StoreU(hn::Zero(whole.d), whole.d, s + j);
  MAKI_UNROLL for (int k = 0; k < Sums::kVectors; ++k) {
    T* const sum = lane_sum + k * Sums::kVectorLanes;
    hn::StoreU(hn::MulAdd(hn::LoadU(whole.d, sum), hn::Set(whole.d, alpha), sums.sum[k]), whole.d, sum);
  }
}

/// y [n] = 2^(x − shift) for x <= shift, n rounded up to whole vectors.
template <class T>
HWY_INLINE void exp2_row(const T* x, const T* shift, std::int64_t n, T* y) {
  const hn::ScalableTag<T> d;
  for (std::int64_t i = 0; i < n; i += max_lanes<T>()) {
    hn::StoreU(Exp2Negative(d, hn::Sub(hn::LoadU(d, x + i), hn::LoadU(d, shift + i))), d, y + i);
  }
}

/// keep [count] = 1 / (1 − p), or 0 where the weight is dropped, for the first `count` picked keys of a block. `row` is
/// the index of the row's key 0 in the random stream.
template <class T>
HWY_NOINLINE void dropout_row(const DropoutRule& rule, std::uint64_t row, const KeyBlock& keys, std::int64_t count,
                              T* HWY_RESTRICT keep) {
  if (count == 0) return;
  HWY_ALIGN std::uint32_t words[256];  // 64 keys take at most 17 blocks of four words; philox_words() requires 64
  const std::uint64_t first = row + static_cast<std::uint64_t>(keys.first);
  const std::int64_t extent = keys.pick == nullptr ? count : keys.pick[count - 1] + 1;
  const std::uint32_t* const own = words + first % 4;
  philox_words(*rule.stream, first / 4, (first % 4 + static_cast<std::uint64_t>(extent) + 3) / 4, words);
  const T kept = static_cast<T>(rule.factor);
  if (keys.pick == nullptr) {
    for (std::int64_t j = 0; j < count; ++j) keep[j] = own[j] < rule.threshold ? T{0} : kept;
  } else {
    for (std::int64_t j = 0; j < count; ++j) keep[j] = own[keys.pick[j]] < rule.threshold ? T{0} : kept;
  }
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_BLOCK_MATH_INL_H_
