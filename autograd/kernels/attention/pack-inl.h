// Copies rows of heads into packed scratch, and gradients back: which keys of a block may be seen, their copies and
// transposed copies, and the delivery of their gradients. Compiled once per SIMD target.
#if defined(MAKI_KERNELS_ATTENTION_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_ATTENTION_PACK_INL_H_
#undef MAKI_KERNELS_ATTENTION_PACK_INL_H_
#else
#define MAKI_KERNELS_ATTENTION_PACK_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include <type_traits>

#include "autograd/kernels/attention/tile.h"
#include "autograd/kernels/simd/partial-inl.h"
#include "autograd/kernels/simd/round-inl.h"
#include "autograd/kernels/simd/transpose-inl.h"
#include "autograd/kernels/simd/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The number of elements of a vector, for targets on which it is known when they are compiled (not SVE or RVV).
template <class T>
constexpr std::int64_t max_lanes() {
  return static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
}

/// The keys of one block that the mask lets through: the picked keys. Must not be copied: `pick` points into it.
struct KeyBlock {
  std::int64_t first, count;                              // position of the block's first key; number of picked keys
  const std::int32_t* pick;                               // [count] their offsets in the block; null: all keys
  std::int32_t picked[kKeyBlock], before[kKeyBlock + 1];  // before[i]: number of picked keys before offset i

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

  /// The number of picked keys at positions up to `last`, which is the number that a row sees whose last key is `last`.
  std::int64_t visible(std::int64_t last) const {
    if (pick == nullptr) return std::clamp<std::int64_t>(last - first + 1, 0, count);
    return before[std::clamp<std::int64_t>(last - first + 1, 0, size_)];
  }

 private:
  std::int64_t size_ = 0;
};

/// The rows of a matrix to pack, what to subtract from each, and whether the result is then rounded to bfloat16.
template <class T>
struct PackSource {
  const T* rows;
  std::int64_t stride;
  const std::int32_t* pick = nullptr;  ///< row r of the source is row pick[r] of the matrix; null: row r
  const T* origin = nullptr;           ///< [cols]; null: nothing is subtracted
  bool rounds = false;                 ///< no effect on double

  const T* row(std::int64_t r) const { return rows + (pick == nullptr ? r : pick[r]) * stride; }
};

/// What packing does to each element: bits of a template parameter.
inline constexpr int kSubtractsOrigin = 1, kRounds = 2;

template <class T>
HWY_INLINE int packing_of(const PackSource<T>& from) {
  return (from.origin != nullptr ? kSubtractsOrigin : 0) | (std::is_same_v<T, float> && from.rounds ? kRounds : 0);
}

template <int kPacking, class V>
HWY_INLINE V packed_vector(V x, V origin) {
  if constexpr ((kPacking & kSubtractsOrigin) != 0) x = hn::Sub(x, origin);
  if constexpr ((kPacking & kRounds) != 0) x = round_to_bf16(x);
  return x;
}

/// Up to one vector of `row` from column c on, as it is packed; zeros beyond the last column.
template <int kPacking, class D, class T>
HWY_INLINE hn::Vec<D> load_packed(D d, const PackSource<T>& from, const T* row, std::int64_t c, std::int64_t cols) {
  constexpr bool kSubtracts = (kPacking & kSubtractsOrigin) != 0;
  const auto origin = kSubtracts ? LoadPartial(d, from.origin + c, cols - c) : hn::Zero(d);
  return packed_vector<kPacking>(LoadPartial(d, row + c, cols - c), origin);
}

template <int kPacking, class T>
HWY_INLINE bool pack_head_rows_from(const PackSource<T>& from, std::int64_t rows, std::int64_t cols, T factor, T* to,
                                    std::int64_t ld) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kLanes = max_lanes<T>();
  const auto times = hn::Set(d, factor);
  // x − x is 0 for finite x and NaN otherwise; collecting it by Or makes the dependency chain one cycle per vector.
  auto bad = hn::Zero(d);
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* const row = from.row(r);
    T* const out = to + r * ld;
    std::int64_t c = 0;
    for (; c + kLanes <= cols; c += kLanes) {
      const auto origin = (kPacking & kSubtractsOrigin) != 0 ? hn::LoadU(d, from.origin + c) : hn::Zero(d);
      const auto x = packed_vector<kPacking>(hn::LoadU(d, row + c), origin);
      bad = hn::Or(bad, hn::Sub(x, x));
      hn::StoreU(hn::Mul(x, times), d, out + c);
    }
    for (; c < ld; c += kLanes) {
      const auto x = load_packed<kPacking>(d, from, row, c, cols);
      bad = hn::Or(bad, hn::Sub(x, x));
      hn::StoreU(hn::Mul(x, times), d, out + c);
    }
  }
  return hn::AllTrue(d, hn::Eq(bad, hn::Zero(d)));
}

/// to [rows, ld] = factor · (from [rows, cols] − origin), the difference rounded if from.rounds is true, with zeros in
/// the columns from cols to ld, a multiple of the vector size. Returns whether all differences are finite: only then
/// may a product multiply them by the zeros that stand for what a row does not see.
template <class T>
HWY_NOINLINE bool pack_head_rows(const PackSource<T>& from, std::int64_t rows, std::int64_t cols, T factor, T* to,
                                 std::int64_t ld) {
  const int packing = packing_of(from);
  if constexpr (std::is_same_v<T, float>) {
    if (packing == kRounds) return pack_head_rows_from<kRounds>(from, rows, cols, factor, to, ld);
    if (packing == (kRounds | kSubtractsOrigin))
      return pack_head_rows_from<kRounds | kSubtractsOrigin>(from, rows, cols, factor, to, ld);
  }
  return packing == 0 ? pack_head_rows_from<0>(from, rows, cols, factor, to, ld)
                      : pack_head_rows_from<kSubtractsOrigin>(from, rows, cols, factor, to, ld);
}

template <int kPacking, std::int64_t kRowStride, class T>
HWY_INLINE void pack_head_transposed_from(const PackSource<T>& from, std::int64_t rows, std::int64_t cols, T* to) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kLanes = max_lanes<T>();
  constexpr int kPieceLanes = kLanesPer128<T>, kPieces = static_cast<int>(kLanes) / kPieceLanes;
  hn::Vec<decltype(d)> x[kPieces][kPieceLanes];
  HWY_ALIGN T edge[kLanes * kLanes];
  for (std::int64_t r = 0; r < rows; r += kLanes) {
    for (std::int64_t c = 0; c < cols; c += kLanes) {
      T* const out = to + c * kRowStride + r;
      if (r + kLanes <= rows && c + kLanes <= cols) {
        load_columns<kPieces>(
            d, [&](std::int64_t i) HWY_ATTR { return from.row(r + i) + c; }, x);
        MAKI_UNROLL for (int i = 0; i < kLanes; ++i) {
          const auto origin = hn::Set(d, (kPacking & kSubtractsOrigin) != 0 ? from.origin[c + i] : T{0});
          hn::StoreU(packed_vector<kPacking>(x[i / kPieceLanes][i % kPieceLanes], origin), d, out + i * kRowStride);
        }
        continue;
      }
      for (std::int64_t i = 0; i < kLanes; ++i) {
        const auto row = r + i < rows ? load_packed<kPacking>(d, from, from.row(r + i), c, cols) : hn::Zero(d);
        hn::Store(row, d, edge + i * kLanes);
      }
      load_columns<kPieces>(
          d, [&](std::int64_t i) HWY_ATTR { return edge + i * kLanes; }, x);
      MAKI_UNROLL for (int i = 0; i < kLanes; ++i) {
        if (c + i < cols) hn::StoreU(x[i / kPieceLanes][i % kPieceLanes], d, out + i * kRowStride);
      }
    }
  }
}

/// to [cols, kRowStride] = (from [rows, cols] − origin)ᵀ, rounded if from.rounds is true, with zeros from `rows` up to
/// the next whole vector, for which there must be room.
template <class T, std::int64_t kRowStride = kKeyBlock>
HWY_NOINLINE void pack_head_transposed(const PackSource<T>& from, std::int64_t rows, std::int64_t cols, T* to) {
  const int packing = packing_of(from);
  if constexpr (std::is_same_v<T, float>) {
    if (packing == kRounds) return pack_head_transposed_from<kRounds, kRowStride>(from, rows, cols, to);
    if (packing == (kRounds | kSubtractsOrigin))
      return pack_head_transposed_from<kRounds | kSubtractsOrigin, kRowStride>(from, rows, cols, to);
  }
  packing == 0 ? pack_head_transposed_from<0, kRowStride>(from, rows, cols, to)
               : pack_head_transposed_from<kSubtractsOrigin, kRowStride>(from, rows, cols, to);
}

/// to [cols] (+)= factor · from [cols].
template <Delivery kBy, class T>
HWY_INLINE void deliver_row(const T* from, std::int64_t cols, T factor, T* to) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kLanes = max_lanes<T>();
  const auto times = hn::Set(d, factor);
  std::int64_t c = 0;
  for (; c + kLanes <= cols; c += kLanes) {
    const auto x = hn::Mul(hn::LoadU(d, from + c), times);
    if constexpr (kBy == Delivery::stream) hn::Stream(x, d, to + c);
    if constexpr (kBy == Delivery::store) hn::StoreU(x, d, to + c);
    if constexpr (kBy == Delivery::add) hn::StoreU(hn::Add(hn::LoadU(d, to + c), x), d, to + c);
  }
  for (; c < cols; ++c) to[c] = (kBy == Delivery::add ? to[c] : T{0}) + from[c] * factor;
}

/// Delivers factor · from to `rows` rows, of which from's are ld apart. If `keys` has a mask, `rows` counts all keys of
/// the block, `from` holds the picked rows only, and the gradient of the others is 0. Call hwy::FlushStream() when all
/// rows of a piece are delivered.
template <class T>
HWY_NOINLINE void deliver_rows(const T* from, std::int64_t ld, const KeyBlock* keys, std::int64_t rows,
                               std::int64_t cols, T factor, GradientRows<T> to) {
  for (std::int64_t r = 0, next = 0; r < rows; ++r) {
    T* const row = to.data + r * to.stride;
    if (keys != nullptr && keys->pick != nullptr && (next == keys->count || keys->pick[next] != r)) {
      if (to.by != Delivery::add) std::fill(row, row + cols, T{0});
      continue;
    }
    const T* const x = from + next++ * ld;
    if (to.by == Delivery::stream) deliver_row<Delivery::stream>(x, cols, factor, row);
    if (to.by == Delivery::store) deliver_row<Delivery::store>(x, cols, factor, row);
    if (to.by == Delivery::add) deliver_row<Delivery::add>(x, cols, factor, row);
  }
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_ATTENTION_PACK_INL_H_
