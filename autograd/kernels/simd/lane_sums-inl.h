// Sums whose order of additions does not depend on the size of a vector, so that every target gives the same bits.
// Included once for every SIMD target.
#if defined(MAKI_KERNELS_SIMD_LANE_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_SIMD_LANE_SUMS_INL_H_
#undef MAKI_KERNELS_SIMD_LANE_SUMS_INL_H_
#else
#define MAKI_KERNELS_SIMD_LANE_SUMS_INL_H_
#endif

#include <cstdint>
#include <hwy/highway.h>

#include "autograd/kernels/simd/partial-inl.h"
#include "autograd/kernels/simd/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// How many lanes a sum is spread over, whatever the size of a vector: 128 bytes, which are four vectors of AVX2, whose
/// chains hide the latency of additions. The bits of every loss depend on it, so it must not change.
template <class T>
inline constexpr std::int64_t kSumLanes = 128 / std::int64_t{sizeof(T)};

/// A sum that is spread over kLanes lanes, which are added by halves: lane i and lane i + kLanes / 2, until one is
/// left. Highway's SumOfLanes adds in an order that depends on its version.
template <class T, std::int64_t kLanes = kSumLanes<T>>
struct LaneSums {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr std::int64_t kVectorLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
  static constexpr int kVectors = static_cast<int>(kLanes / kVectorLanes);
  V sum[kVectors];

  HWY_INLINE LaneSums() { MAKI_UNROLL for (int k = 0; k < kVectors; ++k) sum[k] = hn::Zero(D()); }
  /// Lane i += x[i].
  HWY_INLINE void add(const T* x) {
    MAKI_UNROLL for (int k = 0; k < kVectors; ++k) sum[k] = hn::Add(sum[k], hn::LoadU(D(), x + k * kVectorLanes));
  }
  /// The sum of all lanes, which are left undefined.
  HWY_INLINE T total() { return of_vectors<kVectors>(); }

 private:
  template <int kCount>
  HWY_INLINE T of_vectors() {
    if constexpr (kCount == 1) {
      return of_lanes(D(), sum[0]);
    } else {
      MAKI_UNROLL for (int k = 0; k < kCount / 2; ++k) sum[k] = hn::Add(sum[k], sum[k + kCount / 2]);
      return of_vectors<kCount / 2>();
    }
  }
  template <class Part>
  static HWY_INLINE T of_lanes([[maybe_unused]] Part d, hn::Vec<Part> v) {
#if HWY_TARGET != HWY_SCALAR
    if constexpr (hn::MaxLanes(d) > 1) {
      const hn::Half<Part> half;
      return of_lanes(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
    }
#endif
    return hn::GetLane(v);
  }
};

/// Sums over elements [begin, end) of a row, element begin + i in lane i mod kSumLanes: step(vector, i, sum) returns
/// sum plus the summands of the vector's elements, the first of which is i.
template <class T, class Step>
HWY_INLINE LaneSums<T> sum_in_lanes(std::int64_t begin, std::int64_t end, const Step& step) {
  using Sums = LaneSums<T>;
  const WholeVector<T> whole;
  Sums sums;
  std::int64_t i = begin;
  for (; i + kSumLanes<T> <= end; i += kSumLanes<T>) {
    MAKI_UNROLL for (int k = 0; k < Sums::kVectors; ++k) {
      sums.sum[k] = step(whole, i + k * Sums::kVectorLanes, sums.sum[k]);
    }
  }
  if (i == end) return sums;
  // By way of memory, because a loop with an index cannot keep an array of vectors in registers.
  HWY_ALIGN T rest[kSumLanes<T>] = {};
  const auto zero = hn::Zero(whole.d);
  for_each_vector<T>(end - i, [&](const auto& at, std::int64_t k)
                                  HWY_ATTR { hn::Store(at.Keep(step(at, i + k, zero), zero), whole.d, rest + k); });
  sums.add(rest);
  return sums;
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_SIMD_LANE_SUMS_INL_H_
