// What forward and backward of attention share, for one SIMD target: the register-tiled product that does all the
// arithmetic, packing, transposition, 2^x, and which keys a row sees.
//
// All five products of attention are C[r][c] (+)= Σ_i A(r, i) · B[i][c], with c across the lanes: scores and dP have
// keys in the lanes (against kᵀ, vᵀ, packed once a block), y, dq, dk and dv have columns of the head. Every element is
// one chain over i in order, whatever tile it falls into.
//
// Included by kernel files between foreach_target and their HWY_BEFORE_NAMESPACE; compiled once for each target.
#if defined(MAKI_KERNELS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_ATTENTION_INL_H_
#undef MAKI_KERNELS_ATTENTION_INL_H_
#else
#define MAKI_KERNELS_ATTENTION_INL_H_
#endif

#include <hwy/highway.h>

#include "autograd/kernels/attention_tile.h"
#include "autograd/kernels/math-inl.h"
#include "autograd/kernels/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of a register tile. 8 × 2 vectors is 16 accumulators, twice what hides the latency of fused multiply-add; with
// 16 registers 4 × 2 leaves room for the operands.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
inline constexpr int kTileRows = 8;
#else
inline constexpr int kTileRows = 4;
#endif

template <class T>
constexpr std::int64_t Lanes() {
  return static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
}

enum class Store { set, add, scale_add };  // C = sum, C += sum, C = C · alpha[row] + sum

/// C [R][V vectors], ldc. A is [R][depth] with row stride lda, or, kAcross, [depth][R] with stride lda between depths.
/// B is [depth][V vectors], ldb.
template <int R, int V, bool kAcross, Store kStore, class T>
HWY_INLINE void Tile(std::int64_t depth, const T* HWY_RESTRICT a, std::int64_t lda, const T* HWY_RESTRICT b,
                     std::int64_t ldb, T* HWY_RESTRICT c, std::int64_t ldc, const T* alpha) {
  const hn::ScalableTag<T> d;
  using Vec = hn::Vec<decltype(d)>;
  constexpr std::int64_t kN = Lanes<T>();
  Vec sum[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[r][v] = hn::Zero(d);
  }
  for (std::int64_t i = 0; i < depth; ++i) {
    Vec row[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) row[v] = hn::LoadU(d, b + i * ldb + v * kN);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vec factor = hn::Set(d, kAcross ? a[i * lda + r] : a[r * lda + i]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[r][v] = hn::MulAdd(factor, row[v], sum[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      T* const at = c + r * ldc + v * kN;
      if constexpr (kStore == Store::add) sum[r][v] = hn::Add(hn::LoadU(d, at), sum[r][v]);
      if constexpr (kStore == Store::scale_add) {
        sum[r][v] = hn::MulAdd(hn::LoadU(d, at), hn::Set(d, alpha[r]), sum[r][v]);
      }
      hn::StoreU(sum[r][v], d, at);
    }
  }
}

/// C [R][cols], cols a multiple of the vector.
template <int R, bool kAcross, Store kStore, class T>
HWY_NOINLINE void Product(std::int64_t cols, std::int64_t depth, const T* a, std::int64_t lda, const T* b,
                          std::int64_t ldb, T* c, std::int64_t ldc, const T* alpha = nullptr) {
  constexpr std::int64_t kN = Lanes<T>();
  constexpr int kWide = R == 1 ? 4 : 2;  // a single row has only its columns to hide the latency with
  std::int64_t at = 0;
  for (; at + kWide * kN <= cols; at += kWide * kN) {
    Tile<R, kWide, kAcross, kStore>(depth, a, lda, b + at, ldb, c + at, ldc, alpha);
  }
  for (; at < cols; at += kN) Tile<R, 1, kAcross, kStore>(depth, a, lda, b + at, ldb, c + at, ldc, alpha);
}

/// 2^x for x <= 0, NaN kept: exactly 1 at 0, 0 below the normal range, so −Inf gives 0. 2^f on |f| <= 1/2 is a minimax
/// polynomial with constant term 1 (Remez in 50 digits; relative error 2.6e-9 and 1.8e-17). The argument of a softmax
/// is never positive, which saves the upper end of Exp: 13 operations in place of 19.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp2Negative(D d, V x) {
  using T = hn::TFromD<D>;
  constexpr bool kFloat = sizeof(T) == 4;
  const hn::RebindToUnsigned<D> du;
  // Adding 1.5·2^23 (2^52) leaves the nearest integer, plus the bias of the exponent, in the low bits.
  const V magic = hn::Set(d, static_cast<T>(kFloat ? 12582912.0 + 127 : 6755399441055744.0 + 1023));
  const V shifted = hn::Add(x, magic);
  const V f = hn::Sub(x, hn::Sub(shifted, magic));
  V p;
  if constexpr (kFloat) {
    p = Polynomial(d, f, 1, 0.693147214968027899, 0.240226527828877374, 0.0555031055101379717, 0.00961769297299306232,
                   0.00134066439023517592, 0.000155946781613266193);
  } else {
    p = Polynomial(d, f, 1, 0.693147180559945697, 0.24022650695910098, 0.0555041086647903946, 0.00961812910760700238,
                   0.00133335581534399647, 0.000154035304415721303, 1.52527273851938682e-05, 1.32154426753298221e-06,
                   1.01806476592341389e-07, 7.07257041281442351e-09, 4.07807192958833667e-10);
  }
  const V power = hn::BitCast(d, hn::ShiftLeft < kFloat ? 23 : 52 > (hn::BitCast(du, shifted)));
  const auto tiny = hn::Lt(x, hn::Set(d, static_cast<T>(kFloat ? -125.5 : -1021.5)));
  return hn::IfThenZeroElse(tiny, hn::Mul(p, power));
}

/// The first n lanes of p, zeros behind them; reads nothing else.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadFirst(D d, const T* p, std::int64_t n) {
  if (n >= Lanes<T>()) return hn::LoadU(d, p);
  HWY_ALIGN T part[Lanes<T>()] = {};
  for (std::int64_t i = 0; i < n; ++i) part[i] = p[i];
  return hn::Load(d, part);
}
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StoreFirst(D d, hn::Vec<D> x, T* p, std::int64_t n) {
  if (n >= Lanes<T>()) {
    hn::StoreU(x, d, p);
    return;
  }
  HWY_ALIGN T part[Lanes<T>()];
  hn::Store(x, d, part);
  for (std::int64_t i = 0; i < n; ++i) p[i] = part[i];
}

/// Which rows of a matrix to pack, and what to subtract from each (null: nothing).
template <class T>
struct PackSource {
  const T* rows;
  std::int64_t stride;
  const std::int32_t* pick = nullptr;  ///< row r is row pick[r]; null: row r
  const T* origin = nullptr;           ///< [cols]

  const T* row(std::int64_t r) const { return rows + (pick == nullptr ? r : pick[r]) * stride; }
};

/// Up to a vector of row `row` from column c on, less the origin; zeros behind the last column.
template <bool kOrigin, class D, class T>
HWY_INLINE hn::Vec<D> LoadPart(D d, const PackSource<T>& from, const T* row, std::int64_t c, std::int64_t cols) {
  const auto x = LoadFirst(d, row + c, cols - c);
  if constexpr (!kOrigin) return x;
  return hn::Sub(x, LoadFirst(d, from.origin + c, cols - c));
}

template <bool kOrigin, class T>
HWY_INLINE bool PackRowsFrom(const PackSource<T>& from, std::int64_t rows, std::int64_t cols, T factor,
                             T* HWY_RESTRICT to, std::int64_t ld) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kN = Lanes<T>();
  const auto times = hn::Set(d, factor);
  auto bad = hn::Zero(d);  // x − x is 0, or NaN for what is not finite; Or keeps the chain one cycle a vector
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* const row = from.row(r);
    T* const out = to + r * ld;
    std::int64_t c = 0;
    for (; c + kN <= cols; c += kN) {
      auto x = hn::LoadU(d, row + c);
      if constexpr (kOrigin) x = hn::Sub(x, hn::LoadU(d, from.origin + c));
      bad = hn::Or(bad, hn::Sub(x, x));
      hn::StoreU(hn::Mul(x, times), d, out + c);
    }
    for (; c < ld; c += kN) {
      const auto x = LoadPart<kOrigin>(d, from, row, c, cols);
      bad = hn::Or(bad, hn::Sub(x, x));
      hn::StoreU(hn::Mul(x, times), d, out + c);
    }
  }
  return hn::AllTrue(d, hn::Eq(bad, hn::Zero(d)));
}

/// to [rows][ld] = factor · (from [rows][cols] − origin), columns up to ld filled with 0. Returns whether all of it is
/// finite.
template <class T>
HWY_NOINLINE bool PackRows(const PackSource<T>& from, std::int64_t rows, std::int64_t cols, T factor, T* to,
                           std::int64_t ld) {
  return from.origin == nullptr ? PackRowsFrom<false>(from, rows, cols, factor, to, ld)
                                : PackRowsFrom<true>(from, rows, cols, factor, to, ld);
}

/// The N × N matrix in N vectors, transposed. A step takes each pair of vectors whose numbers differ in one bit apart
/// into even and odd lanes: the lowest bit of the lane moves into the number, the bit of the number to the top of the
/// lane. After log2 N steps they have changed places.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void TransposeSquare([[maybe_unused]] D d, [[maybe_unused]] V* x) {
#if HWY_TARGET != HWY_SCALAR
  constexpr int kN = static_cast<int>(Lanes<hn::TFromD<D>>());
#pragma GCC unroll 4
  for (int bit = 1; bit < kN; bit *= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < kN; ++i) {
      if ((i & bit) != 0) continue;
      const V low = x[i], high = x[i | bit];
      x[i] = hn::ConcatEven(d, high, low);
      x[i | bit] = hn::ConcatOdd(d, high, low);
    }
  }
#endif
}

template <bool kOrigin, class T>
HWY_INLINE void PackTransposedFrom(const PackSource<T>& from, std::int64_t rows, std::int64_t cols, T* to) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr std::int64_t kN = Lanes<T>();
  for (std::int64_t r = 0; r < rows; r += kN) {
    for (std::int64_t c = 0; c < cols; c += kN) {
      T* const out = to + c * kKeyBlock + r;
      V x[kN];
      if (from.pick == nullptr && r + kN <= rows && c + kN <= cols) {
        const T* const in = from.rows + r * from.stride + c;
        V origin = hn::Zero(d);
        if constexpr (kOrigin) origin = hn::LoadU(d, from.origin + c);
#pragma GCC unroll 16
        for (std::int64_t i = 0; i < kN; ++i) {
          x[i] = hn::LoadU(d, in + i * from.stride);
          if constexpr (kOrigin) x[i] = hn::Sub(x[i], origin);
        }
        TransposeSquare(d, x);
#pragma GCC unroll 16
        for (std::int64_t i = 0; i < kN; ++i) hn::StoreU(x[i], d, out + i * kKeyBlock);
        continue;
      }
      for (std::int64_t i = 0; i < kN; ++i) {
        x[i] = hn::Zero(d);
        if (r + i < rows) x[i] = LoadPart<kOrigin>(d, from, from.row(r + i), c, cols);
      }
      TransposeSquare(d, x);
      for (std::int64_t i = 0; i < std::min(kN, cols - c); ++i) hn::StoreU(x[i], d, out + i * kKeyBlock);
    }
  }
}

/// to [cols][kKeyBlock] = (from [rows][cols] − origin)ᵀ; up to a full vector of rows filled with 0.
template <class T>
HWY_NOINLINE void PackTransposed(const PackSource<T>& from, std::int64_t rows, std::int64_t cols, T* to) {
  if (from.origin == nullptr) return PackTransposedFrom<false>(from, rows, cols, to);
  PackTransposedFrom<true>(from, rows, cols, to);
}

/// The keys of one block that the mask lets through, and how many of them a row sees.
struct KeyBlock {
  std::int64_t first, count;                              // position of the block; keys in it that may be seen
  const std::int32_t* pick;                               // [count] their offsets in the block; null: all
  std::int32_t picked[kKeyBlock], before[kKeyBlock + 1];  // before[i]: how many of them lie before offset i

  KeyBlock(const std::int32_t* mask, std::int64_t begin, std::int64_t keys) : first(begin), pick(nullptr) {
    const std::int64_t extent = std::min<std::int64_t>(kKeyBlock, keys - begin);
    count = extent;
    if (mask == nullptr) return;
    std::int32_t n = 0;
    for (std::int32_t i = 0; i < extent; ++i) {
      before[i] = n;
      if (mask[begin + i] != 0) picked[n++] = i;
    }
    before[extent] = n;
    count = n;
    pick = picked;
    size_ = extent;
  }

  /// How many picked keys are at positions up to `last`.
  std::int64_t visible(std::int64_t last) const {
    if (pick == nullptr) return std::clamp<std::int64_t>(last - first + 1, 0, count);
    return before[std::clamp<std::int64_t>(last - first + 1, 0, size_)];
  }

 private:
  std::int64_t size_ = 0;
};

/// keep [count]: 1 / (1 − p), or 0 for a dropped weight, of the first `count` picked keys of a row whose key 0 has
/// number `row` in the stream.
template <class T>
HWY_NOINLINE void DropoutRow(const DropoutRule& rule, std::uint64_t row, const KeyBlock& keys, std::int64_t count,
                             T* HWY_RESTRICT keep) {
  if (count == 0) return;
  HWY_ALIGN std::uint32_t words[256];  // 64 keys are in at most 17 blocks of four
  const std::uint64_t first = row + static_cast<std::uint64_t>(keys.first);
  const std::int64_t extent = keys.pick == nullptr ? count : keys.pick[count - 1] + 1;
  const std::uint32_t* const own = words + first % 4;
  PhiloxWords(*rule.stream, first / 4, (first % 4 + static_cast<std::uint64_t>(extent) + 3) / 4, words);
  const T kept = static_cast<T>(rule.factor);
  if (keys.pick == nullptr) {
    for (std::int64_t j = 0; j < count; ++j) keep[j] = own[j] < rule.threshold ? T{0} : kept;
  } else {
    for (std::int64_t j = 0; j < count; ++j) keep[j] = own[keys.pick[j]] < rule.threshold ? T{0} : kept;
  }
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_ATTENTION_INL_H_
