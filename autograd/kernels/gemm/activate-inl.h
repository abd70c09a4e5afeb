// Applies activations to finished rows of C. Included once for every SIMD target.
#if defined(MAKI_KERNELS_GEMM_ACTIVATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_GEMM_ACTIVATE_INL_H_
#undef MAKI_KERNELS_GEMM_ACTIVATE_INL_H_
#else
#define MAKI_KERNELS_GEMM_ACTIVATE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <hwy/highway.h>

#include "autograd/kernels/gemm/block.h"
#include "autograd/kernels/simd/activation-inl.h"
#include "autograd/kernels/simd/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// How a vector is stored: past the caches, or not.
struct StorePast {
  template <class Vector, class V, class T>
  HWY_INLINE void operator()(const Vector& at, V v, T* to) const {
    at.Stream(v, to);
  }
};
struct StoreInCaches {
  template <class Vector, class V, class T>
  HWY_INLINE void operator()(const Vector& at, V v, T* to) const {
    at.Store(v, to);
  }
};

/// The activations: f(d, x) is the value at x, and f(d, x, derivative) sets the derivative, too.
struct GeluOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Gelu(d, x);
  }
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V& derivative) const {
    return GeluAndDerivative(d, x, derivative);
  }
};
struct GeluTanhOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return GeluTanh(d, x);
  }
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V& derivative) const {
    return GeluTanhAndDerivative(d, x, derivative);
  }
};

/// y [n] = f(x), and its derivatives in `kept` unless that is null; y may be x.
template <class StoreY, class StoreKept, class T, class F>
HWY_INLINE void activate_row(std::int64_t n, const T* x, T* y, T* kept, F f) {
  for_each_vector<T>(n, [=](const auto& at, std::int64_t j) HWY_ATTR {
    if (kept == nullptr) {
      StoreY()(at, f(at.d, at.Load(x + j)), y + j);
    } else {
      hn::Vec<hn::ScalableTag<T>> derivative;
      StoreY()(at, f(at.d, at.Load(x + j), derivative), y + j);
      StoreKept()(at, derivative, kept + j);
    }
  });
}

/// y [n] = activation(x), and its derivatives in `kept` unless that is null. The activation must not be none.
template <class StoreY, class StoreKept, class T>
HWY_INLINE void activate_row(GemmActivation activation, std::int64_t n, const T* x, T* y, T* kept) {
  activation == GemmActivation::gelu ? activate_row<StoreY, StoreKept>(n, x, y, kept, GeluOf())
                                     : activate_row<StoreY, StoreKept>(n, x, y, kept, GeluTanhOf());
}

/// y [n] = x · factor; y may be x.
template <class StoreY, class T>
HWY_INLINE void multiply_row(std::int64_t n, const T* x, const T* factor, T* y) {
  for_each_vector<T>(n, [=](const auto& at, std::int64_t j)
                            HWY_ATTR { StoreY()(at, hn::Mul(at.Load(x + j), at.Load(factor + j)), y + j); });
}

/// y [n] = what becomes of x after the last step of a block, in which it begins at element `at` of C: the activation,
/// or the product with the factor. Copies x if there is neither. y may be x.
template <class StoreY, class StoreKept, class T>
HWY_INLINE void finish_row(const GemmBlock<T>& g, std::int64_t at, std::int64_t n, const T* x, T* y) {
  if (g.activation != GemmActivation::none) {
    activate_row<StoreY, StoreKept>(g.activation, n, x, y, g.derivative != nullptr ? g.derivative + at : nullptr);
  } else if (g.factor != nullptr) {
    multiply_row<StoreY>(n, x, g.factor + at, y);
  } else if (x != y) {
    for_each_vector<T>(
        n, [=](const auto& vector, std::int64_t j) HWY_ATTR { StoreY()(vector, vector.Load(x + j), y + j); });
  }
}

/// Finishes rows [begin, end) of C while they are in the level-1 cache.
template <class T>
HWY_INLINE void finish_rows(const GemmBlock<T>& g, std::int64_t begin, std::int64_t end) {
  if (g.activation == GemmActivation::none && g.factor == nullptr) return;
  for (std::int64_t i = begin; i < end; ++i) {
    T* const c = g.c + i * g.ldc;
    finish_row<StoreInCaches, StoreInCaches>(g, i * g.ldc, g.n, c, c);
  }
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_GEMM_ACTIVATE_INL_H_
