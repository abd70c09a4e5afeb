// Loads and stores for loop tails, and the loop that uses them: fewer elements than a vector holds, without touching
// memory beyond them (Highway's MaskedLoad reads whole vectors on CPUs without masks). The other lanes are 0; they are
// computed with but never stored. So a tail goes through the same instructions as whole vectors and gets the same bits.
#if defined(MAKI_KERNELS_PARTIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_PARTIAL_INL_H_
#undef MAKI_KERNELS_PARTIAL_INL_H_
#else
#define MAKI_KERNELS_PARTIAL_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "autograd/core/sink.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Elements p[0 … count) in the first lanes, zeros in the others; if count is larger, a whole vector. Nothing is read
/// if count is 0 or negative, as it is in scratch rows that are padded by more than a vector.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadPartial(D d, const T* p, std::int64_t count) {
  if (count >= static_cast<std::int64_t>(hn::Lanes(d))) return hn::LoadU(d, p);
  if (count <= 0) return hn::Zero(d);  // FirstN() takes a negative number for a large one
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(count)), d, p);
#else
  HWY_ALIGN T lanes[hn::MaxLanes(d)] = {};
  for (std::int64_t i = 0; i < count; ++i) lanes[i] = p[i];
  return hn::Load(d, lanes);
#endif
}

/// p[0 … count) = the first lanes of v; if count is larger, all of them; if it is 0 or negative, none.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StorePartial(hn::Vec<D> v, D d, T* p, std::int64_t count) {
  if (count >= static_cast<std::int64_t>(hn::Lanes(d))) return hn::StoreU(v, d, p);
  if (count <= 0) return;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(count)), d, p);
#else
  HWY_ALIGN T lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  for (std::int64_t i = 0; i < count; ++i) p[i] = lanes[i];
#endif
}

/// A whole or partial vector of doubles from floats or doubles.
template <class D>
HWY_INLINE hn::Vec<D> LoadAsDouble(D d, const float* p) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), p));
}
template <class D>
HWY_INLINE hn::Vec<D> LoadAsDouble(D d, const double* p) {
  return hn::LoadU(d, p);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadPartialAsDouble(D d, const float* p, std::int64_t count) {
  return hn::PromoteTo(d, LoadPartial(hn::Rebind<float, D>(), p, count));
}
template <class D>
HWY_INLINE hn::Vec<D> LoadPartialAsDouble(D d, const double* p, std::int64_t count) {
  return LoadPartial(d, p, count);
}

/// How the body of a loop over a row accesses the current vector: as a WholeVector, or as a LastVector in the loop
/// tail. Stream() is a store past the caches (simd/stream.h), for a p that is a multiple of the vector size;
/// FlushStream() of Highway must follow before another thread reads. Keep(v, other) is v in the lanes that belong to
/// the row and `other` in those beyond its end. LoadAsDouble() is for vectors of double that are loaded from floats or
/// doubles. Requires: 0 < LastVector::count < lanes.
template <class T>
struct WholeVector {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  D d;
  HWY_INLINE V Load(const T* p) const { return hn::LoadU(d, p); }
  template <class X>
  HWY_INLINE V LoadAsDouble(const X* p) const {
    return kernels::HWY_NAMESPACE::LoadAsDouble(d, p);
  }
  HWY_INLINE void Store(V v, T* p) const { hn::StoreU(v, d, p); }
  HWY_INLINE void Stream(V v, T* p) const { hn::Stream(v, d, p); }
  HWY_INLINE V Keep(V v, V /*other*/) const { return v; }
};
template <class T>
struct LastVector {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  D d;
  std::int64_t count;
  HWY_INLINE V Load(const T* p) const { return LoadPartial(d, p, count); }
  template <class X>
  HWY_INLINE V LoadAsDouble(const X* p) const {
    return LoadPartialAsDouble(d, p, count);
  }
  HWY_INLINE void Store(V v, T* p) const { StorePartial(v, d, p, count); }
  HWY_INLINE void Stream(V v, T* p) const { Store(v, p); }
  HWY_INLINE V Keep(V v, V other) const {
    return hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(count)), v, other);
  }
};

/// Stores v to, or adds it to, elements i, i + 1, … from sink.data on; the sink must not be null.
template <class Vector, class T, class V>
HWY_INLINE void put_vector(const Vector& at, const Sink<T>& sink, std::int64_t i, V v) {
  at.Store(sink.add ? hn::Add(at.Load(sink.data + i), v) : v, sink.data + i);
}

/// Calls body(vector, i) for every vector of a row of n elements, in order; i is the index of its first element. Does
/// nothing if n is 0.
template <class T, class Body>
HWY_INLINE void for_each_vector(std::int64_t n, const Body& body) {
  const WholeVector<T> whole;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(whole.d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(whole, i);
  if (i < n) body(LastVector<T>{{}, n - i}, i);
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_PARTIAL_INL_H_
