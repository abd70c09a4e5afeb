// Loops over one row, for kernels that reduce or normalize rows: softmax, cross_entropy, layer_norm, rms_norm and
// others. The loop tail goes through the same instructions as the whole vectors and touches no memory beyond the row.
#if defined(MAKI_KERNELS_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_ROW_INL_H_
#undef MAKI_KERNELS_ROW_INL_H_
#else
#define MAKI_KERNELS_ROW_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "autograd/core/sink.h"
#include "autograd/kernels/simd/lane_sums-inl.h"
#include "autograd/kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// A row is summed in segments of this many elements: in the type of the row within a segment, in double across
/// segments. Longer segments round more (one of 50,000 terms of 0.9 in each lane: to 1e-4), shorter ones add across the
/// lanes more often. The bits of losses depend on it, so it must not change.
inline constexpr std::int64_t kRowSegment = 256;

/// Σ term(vector, i) over a row of n elements, where term returns a vector of summands; 0 if n is 0.
template <class T, class Term>
HWY_INLINE double sum_row(std::int64_t n, const Term& term) {
  double total = 0;
  for (std::int64_t i = 0; i < n; i += kRowSegment) {
    total += static_cast<double>(
        sum_in_lanes<T>(i, std::min(n, i + kRowSegment), [&](const auto& at, std::int64_t k, auto sum) HWY_ATTR {
          return hn::Add(sum, term(at, k));
        }).total());
  }
  return total;
}

struct TwoSums {
  double a = 0, b = 0;
};
/// Two such sums in one pass: term(vector, i, a, b) sets the summands of both.
template <class T, class Term>
HWY_INLINE TwoSums sum_row_pair(std::int64_t n, const Term& term) {
  using Sums = LaneSums<T>;
  const WholeVector<T> whole;
  TwoSums total;
  for (std::int64_t i = 0; i < n;) {
    const std::int64_t end = std::min(n, i + kRowSegment);
    Sums a, b;
    for (; i + kSumLanes<T> <= end; i += kSumLanes<T>) {
      MAKI_UNROLL for (int k = 0; k < Sums::kVectors; ++k) {
        typename Sums::V x, y;
        term(whole, i + k * Sums::kVectorLanes, x, y);
        a.sum[k] = hn::Add(a.sum[k], x);
        b.sum[k] = hn::Add(b.sum[k], y);
      }
    }
    if (i < end) {
      HWY_ALIGN T rest[2][kSumLanes<T>] = {};
      const auto zero = hn::Zero(whole.d);
      for_each_vector<T>(end - i, [&](const auto& at, std::int64_t k) HWY_ATTR {
        typename Sums::V x, y;
        term(at, i + k, x, y);
        hn::Store(at.Keep(x, zero), whole.d, rest[0] + k);
        hn::Store(at.Keep(y, zero), whole.d, rest[1] + k);
      });
      a.add(rest[0]);
      b.add(rest[1]);
      i = end;
    }
    total.a += static_cast<double>(a.total());
    total.b += static_cast<double>(b.total());
  }
  return total;
}

/// Σ x[i] over a row of n elements, with every addition in double, so that the mean of equal floats is exact.
template <class T>
HWY_INLINE double sum_row_in_double(std::int64_t n, const T* x) {
  return sum_row<double>(n, [x](const auto& at, std::int64_t i) HWY_ATTR { return at.LoadAsDouble(x + i); });
}

/// The largest element of a row: NaN if any is NaN, −Inf if n is 0.
template <class T>
HWY_INLINE T max_of_row(std::int64_t n, const T* x) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto lowest = hn::Neg(hn::Inf(d));
  auto m0 = lowest, m1 = lowest;
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    m0 = MaxKeepNaN(m0, hn::LoadU(d, x + i));
    m1 = MaxKeepNaN(m1, hn::LoadU(d, x + i + lanes));
  }
  for_each_vector<T>(n - i, [&](const auto& at, std::int64_t k)
                                HWY_ATTR { m0 = MaxKeepNaN(m0, at.Keep(at.Load(x + i + k), lowest)); });
  m0 = MaxKeepNaN(m0, m1);
  if (!hn::AllFalse(d, hn::IsNaN(m0))) return std::numeric_limits<T>::quiet_NaN();
  return hn::GetLane(hn::MaxOfLanes(d, m0));
}

/// exp and log of one double by the vector functions: unlike those of libm, they give the same bits on every machine
/// with the same target.
HWY_INLINE double exp_scalar(double x) {
  const hn::ScalableTag<double> d;
  return hn::GetLane(Exp(d, hn::Set(d, x)));
}
HWY_INLINE double log_scalar(double x) {
  const hn::ScalableTag<double> d;
  return hn::GetLane(Log(d, hn::Set(d, x)));
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_ROW_INL_H_
