// Multiplying by the lanes of a vector, which NEON does in one instruction: a register tile then loads several elements
// of A as one vector, where other targets copy each element to all lanes of a register. Included once for every SIMD
// target.
#if defined(MAKI_KERNELS_SIMD_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_SIMD_LANES_INL_H_
#undef MAKI_KERNELS_SIMD_LANES_INL_H_
#else
#define MAKI_KERNELS_SIMD_LANES_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <hwy/highway.h>
#include <utility>

#include "autograd/kernels/simd/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Whether to use what follows, which other targets compile to more instructions.
inline constexpr bool kMultipliesByLane = HWY_ARCH_ARM_A64;

/// Keeps the compiler from moving operations on x across this place. Left alone, GCC 12 takes all rows of a tile step
/// by step, for which there are too few registers.
template <class V>
HWY_INLINE void pin(V& x) {
#if HWY_ARCH_ARM_A64
  auto raw = x.raw;
  asm volatile("" : "+w"(raw));
  x = V(raw);
#else
  (void)x;
#endif
}

template <int kFirst, int kCount, int kVecs, class V, int kRows, int... kSteps>
HWY_INLINE void add_lanes_of_rows(V (&a)[kCount], const V (&b)[sizeof...(kSteps)][kVecs], V (&sum)[kRows][kVecs],
                                  std::integer_sequence<int, kSteps...>) {
  const auto add = [&](V x, const V(&row)[kVecs], V(&to)[kVecs])
                       HWY_ATTR { MAKI_UNROLL for (int v = 0; v < kVecs; ++v) to[v] = hn::MulAdd(x, row[v], to[v]); };
  const auto add_step = [&]<int kStep>(std::integral_constant<int, kStep>) HWY_ATTR {
    MAKI_UNROLL for (int i = 0; i < kCount; ++i) add(hn::Broadcast<kStep>(a[i]), b[kStep], sum[kFirst + i]);
  };
  MAKI_UNROLL for (int i = 0; i < kCount; ++i) pin(a[i]);
  (add_step(std::integral_constant<int, kSteps>()), ...);
  MAKI_UNROLL for (int i = 0; i < kCount; ++i) { MAKI_UNROLL for (int v = 0; v < kVecs; ++v) pin(sum[kFirst + i][v]); }
}
/// As many steps of a tile as a vector has lanes: sum[i][v] += a(i)[step] · b[step][v], step after step; a(i) are the
/// elements of row i. So many rows at a time that four chains hide the latency of a multiply-add.
template <int kFirst = 0, int kSteps, int kRows, int kVecs, class A, class V>
HWY_INLINE void add_steps_by_lane(const A& a, const V (&b)[kSteps][kVecs], V (&sum)[kRows][kVecs]) {
  constexpr int kCount = std::min(kRows - kFirst, kVecs >= 4 ? 1 : 4 / kVecs);
  V x[kCount];
  MAKI_UNROLL for (int i = 0; i < kCount; ++i) x[i] = a(kFirst + i);
  add_lanes_of_rows<kFirst>(x, b, sum, std::make_integer_sequence<int, kSteps>());
  if constexpr (kFirst + kCount < kRows) add_steps_by_lane<kFirst + kCount>(a, b, sum);
}

template <int kVecs, class V, std::size_t kLoads, int... kRows>
HWY_INLINE void add_rows(const V (&a)[kLoads], const V (&b)[kVecs], V (&sum)[sizeof...(kRows)][kVecs],
                         std::integer_sequence<int, kRows...>) {
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(hn::DFromV<V>()));
  const auto add = [&](V x, V(&row)[kVecs])
                       HWY_ATTR { MAKI_UNROLL for (int v = 0; v < kVecs; ++v) row[v] = hn::MulAdd(x, b[v], row[v]); };
  (add(hn::Broadcast<kRows % kLanes>(a[kRows / kLanes]), sum[kRows]), ...);
}
/// One step of a tile: sum[i][v] += a[i] · b[v]. Reads a up to the next whole vector.
template <int kRows, int kVecs, class T, class V>
HWY_INLINE void add_step_by_lane(const T* a, const V (&b)[kVecs], V (&sum)[kRows][kVecs]) {
  const hn::DFromV<V> d;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(d)), kLoads = (kRows + kLanes - 1) / kLanes;
  V x[kLoads];
  MAKI_UNROLL for (int i = 0; i < kLoads; ++i) x[i] = hn::LoadU(d, a + i * kLanes);
  add_rows(x, b, sum, std::make_integer_sequence<int, kRows>());
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_SIMD_LANES_INL_H_
