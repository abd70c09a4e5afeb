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
#include "autograd/kernels/simd/math-inl.h"
#include "autograd/kernels/simd/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// A row is summed in segments of this many elements: in the type of the row within a segment, in double across
/// segments. Longer segments round more (one of 50,000 terms of 0.9 in each lane: to 1e-4), shorter ones add across the
/// lanes more often. The bits of losses depend on it, so it must not change.
inline constexpr std::int64_t kRowSegment = 256;

/// Σ term(vector, i) over a row of n elements, where term returns a vector of summands; 0 if n is 0. Four chains hide
/// the latency of the additions. The order of the additions depends on n and the target alone.
template <class T, class Term>
HWY_INLINE double sum_row(std::int64_t n, const Term& term) {
  const WholeVector<T> whole;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(whole.d));
  const auto zero = hn::Zero(whole.d);
  double total = 0;
  for (std::int64_t i = 0; i < n;) {
    const std::int64_t end = std::min(n, i + kRowSegment);
    auto s0 = zero, s1 = zero, s2 = zero, s3 = zero;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      s0 = hn::Add(s0, term(whole, i));
      s1 = hn::Add(s1, term(whole, i + lanes));
      s2 = hn::Add(s2, term(whole, i + 2 * lanes));
      s3 = hn::Add(s3, term(whole, i + 3 * lanes));
    }
    for (; i + lanes <= end; i += lanes) s0 = hn::Add(s0, term(whole, i));
    if (i < end) {
      const LastVector<T> last{{}, end - i};
      s1 = hn::Add(s1, last.Keep(term(last, i), zero));
      i = end;
    }
    const auto sum = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
    total += static_cast<double>(sum_of_lanes(whole.d, sum));
  }
  return total;
}

struct TwoSums {
  double a = 0, b = 0;
};
/// Two such sums in one pass: term(vector, i, a, b) sets the summands of both.
template <class T, class Term>
HWY_INLINE TwoSums sum_row_pair(std::int64_t n, const Term& term) {
  const WholeVector<T> whole;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(whole.d));
  const auto zero = hn::Zero(whole.d);
  TwoSums total;
  for (std::int64_t i = 0; i < n;) {
    const std::int64_t end = std::min(n, i + kRowSegment);
    auto a0 = zero, a1 = zero, b0 = zero, b1 = zero, a = zero, b = zero;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      term(whole, i, a, b);
      a0 = hn::Add(a0, a);
      b0 = hn::Add(b0, b);
      term(whole, i + lanes, a, b);
      a1 = hn::Add(a1, a);
      b1 = hn::Add(b1, b);
    }
    for (; i + lanes <= end; i += lanes) {
      term(whole, i, a, b);
      a0 = hn::Add(a0, a);
      b0 = hn::Add(b0, b);
    }
    if (i < end) {
      const LastVector<T> last{{}, end - i};
      term(last, i, a, b);
      a1 = hn::Add(a1, last.Keep(a, zero));
      b1 = hn::Add(b1, last.Keep(b, zero));
      i = end;
    }
    total.a += static_cast<double>(sum_of_lanes(whole.d, hn::Add(a0, a1)));
    total.b += static_cast<double>(sum_of_lanes(whole.d, hn::Add(b0, b1)));
  }
  return total;
}

/// Σ x[i] over a row of n elements, with every addition in double, in four chains.
template <class T>
HWY_INLINE double sum_in_four_chains(std::int64_t n, const T* x) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = hn::Add(s0, LoadAsDouble(d, x + i));
    s1 = hn::Add(s1, LoadAsDouble(d, x + i + lanes));
    s2 = hn::Add(s2, LoadAsDouble(d, x + i + 2 * lanes));
    s3 = hn::Add(s3, LoadAsDouble(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) s0 = hn::Add(s0, LoadAsDouble(d, x + i));
  if (i < n) s1 = hn::Add(s1, LoadPartialAsDouble(d, x + i, n - i));
  return sum_of_lanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
}

/// Σ x[i] over a row of n elements, with every addition in double, so that the mean of equal floats is exact.
HWY_INLINE double sum_row_in_double(std::int64_t n, const double* x) {
  return sum_row<double>(n, [x](const auto& at, std::int64_t i) HWY_ATTR { return at.Load(x + i); });
}
HWY_INLINE double sum_row_in_double(std::int64_t n, const float* x) { return sum_in_four_chains(n, x); }

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
