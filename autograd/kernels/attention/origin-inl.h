// The origins that attention subtracts from keys and values (attention.h gives the reason), and the products of early
// rows. Packed blocks have the median of the first seven keys subtracted; a row that sees fewer keys has another
// origin, so its products read the keys in place. Compiled once per SIMD target.
#if defined(MAKI_KERNELS_ATTENTION_ORIGIN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_ATTENTION_ORIGIN_INL_H_
#undef MAKI_KERNELS_ATTENTION_ORIGIN_INL_H_
#else
#define MAKI_KERNELS_ATTENTION_ORIGIN_INL_H_
#endif

#include <hwy/highway.h>

#include "autograd/kernels/attention/pack-inl.h"
#include "autograd/kernels/attention/tile.h"
#include "autograd/kernels/simd/lane_sums-inl.h"
#include "autograd/kernels/simd/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// to [padded(cols)] = the median of each column over kCount picked rows. It is replaced by 0 beyond the last column,
/// where it is not finite, and, if kCount is 7, where the middle three values differ by more than half of |median|:
/// outliers may then be the majority, and the median one of them. Sorts by odd-even transposition.
template <int kCount, class T>
HWY_NOINLINE void column_median(const PackSource<T>& from, const std::int64_t* picked, std::int64_t cols, T* to) {
  const hn::ScalableTag<T> d;
  for (std::int64_t c = 0; c < padded(cols); c += max_lanes<T>()) {
    hn::Vec<decltype(d)> x[kCount];
    for (int i = 0; i < kCount; ++i) x[i] = LoadPartial(d, from.rows + picked[i] * from.stride + c, cols - c);
    MAKI_UNROLL for (int pass = 0; pass < kCount; ++pass) {
      MAKI_UNROLL for (int i = pass % 2; i + 1 < kCount; i += 2) {
        const auto low = hn::Min(x[i], x[i + 1]);
        x[i + 1] = hn::Max(x[i], x[i + 1]);
        x[i] = low;
      }
    }
    const auto median = x[kCount / 2];
    auto useful = hn::Eq(hn::Sub(median, median), hn::Zero(d));
    if constexpr (kCount >= 7) {
      const auto spread = hn::Sub(x[kCount / 2 + 1], x[kCount / 2 - 1]);
      useful = hn::And(useful, hn::Le(hn::Add(spread, spread), hn::Abs(median)));
    }
    hn::StoreU(hn::IfThenElseZero(useful, median), d, to + c);
  }
}

/// The three origins of a head's keys or values (see attention.h): for rows that see one or two keys, three to six, and
/// more. Those that no row of the tile uses are left uninitialized; a row that sees no key gets `of_one`, in a
/// product that nothing reads.
template <class T>
struct Origins {
  T *of_one, *of_three, *of_seven;                      // [padded(head_size)]
  std::int64_t first_row_of_three, first_row_of_seven;  // the first rows whose origin is of_three, of_seven

  /// `at`: 3 · padded(head_size) elements of scratch.
  Origins(const AttentionTile<T>& tile, T* at)
      : of_one(at),
        of_three(of_one + padded(tile.head_size)),
        of_seven(of_three + padded(tile.head_size)),
        first_row_of_three(tile.first_row_that_sees(3)),
        first_row_of_seven(tile.first_row_that_sees(kKeysForOrigin)) {}

  /// Computes the origins from the tile's keys or values.
  void compute(const AttentionTile<T>& tile, const T* rows, std::int64_t stride) {
    const std::int64_t* const picked = tile.first_keys.at.data();
    const PackSource<T> from{rows, stride};
    if (first_row_of_three > 0 && tile.first_keys.count >= 1) column_median<1>(from, picked, tile.head_size, of_one);
    if (first_row_of_seven > first_row_of_three) column_median<3>(from, picked, tile.head_size, of_three);
    if (first_row_of_seven < tile.queries) column_median<kKeysForOrigin>(from, picked, tile.head_size, of_seven);
  }
  void clear(std::int64_t head_size) { std::fill(of_one, of_one + 3 * padded(head_size), T{0}); }

  const T* of_row(std::int64_t row) const {
    return row < first_row_of_three ? of_one : row < first_row_of_seven ? of_three : of_seven;
  }
};

/// Σ_c a[c] · (row[c] − origin[c]). Reads exactly cols elements of all three.
template <class T>
HWY_INLINE T dot_minus_origin(const T* a, const T* row, const T* origin, std::int64_t cols) {
  return sum_in_lanes<T>(0, cols,
                         [=](const auto& at, std::int64_t c, auto sum) HWY_ATTR {
                           return hn::MulAdd(at.Load(a + c), hn::Sub(at.Load(row + c), at.Load(origin + c)), sum);
                         })
      .total();
}

/// to[j] = a · (row j of the block − its origin) for the first `count` picked rows.
template <class T>
HWY_NOINLINE void dots_minus_origin(const T* a, const PackSource<T>& block, std::int64_t count, std::int64_t cols,
                                    T* to) {
  for (std::int64_t j = 0; j < count; ++j) to[j] = dot_minus_origin(a, block.row(j), block.origin, cols);
}

/// to [padded(cols)] += Σ_j factors[j] · (row j of the block − its origin) over the first `count` picked rows.
template <class T>
HWY_NOINLINE void add_minus_origin(const T* factors, const PackSource<T>& block, std::int64_t count, std::int64_t cols,
                                   T* to) {
  const hn::ScalableTag<T> d;
  for (std::int64_t c = 0; c < cols; c += max_lanes<T>()) {
    auto sum = hn::LoadU(d, to + c);
    for (std::int64_t j = 0; j < count; ++j) {
      const auto x = hn::Sub(LoadPartial(d, block.row(j) + c, cols - c), hn::LoadU(d, block.origin + c));
      sum = hn::MulAdd(hn::Set(d, factors[j]), x, sum);
    }
    hn::StoreU(sum, d, to + c);
  }
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_ATTENTION_ORIGIN_INL_H_
