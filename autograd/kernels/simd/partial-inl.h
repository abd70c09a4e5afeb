// Loads and stores for loop tails: fewer elements than a vector holds, without touching memory beyond them (Highway's
// MaskedLoad reads whole vectors on CPUs without masks). The other lanes are 0; they are computed with but never
// stored. So a tail goes through the same instructions as whole vectors and gets the same bits.
#if defined(MAKI_KERNELS_PARTIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_PARTIAL_INL_H_
#undef MAKI_KERNELS_PARTIAL_INL_H_
#else
#define MAKI_KERNELS_PARTIAL_INL_H_
#endif

#include <cstddef>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Elements p[0 … count) in the first lanes, zeros in the others; 0 <= count <= Lanes(d).
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadPartial(D d, const T* p, std::size_t count) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, count), d, p);
#else
  HWY_ALIGN T lanes[hn::MaxLanes(d)] = {};
  for (std::size_t i = 0; i < count; ++i) lanes[i] = p[i];
  return hn::Load(d, lanes);
#endif
}

/// p[0 … count) = the first lanes of v; 0 <= count <= Lanes(d).
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StorePartial(hn::Vec<D> v, D d, T* p, std::size_t count) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, count), d, p);
#else
  HWY_ALIGN T lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  for (std::size_t i = 0; i < count; ++i) p[i] = lanes[i];
#endif
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_PARTIAL_INL_H_
