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

/// y [n] = value(d, x), past the caches if kStreams; y may be x. If `kept` is not null, it receives the derivatives,
/// and both come from value_and_derivative(d, x, derivative).
template <bool kStreams, class T, class F, class G>
HWY_INLINE void activate_row(std::int64_t n, const T* x, T* y, T* kept, F value, G value_and_derivative) {
  for_each_vector<T>(n, [=](const auto& at, std::int64_t j) HWY_ATTR {
    const auto store = [&](auto v, T* to) HWY_ATTR {
      if constexpr (kStreams) {
        at.Stream(v, to);
      } else {
        at.Store(v, to);
      }
    };
    if (kept == nullptr) {
      store(value(at.d, at.Load(x + j)), y + j);
    } else {
      hn::Vec<hn::ScalableTag<T>> derivative;
      store(value_and_derivative(at.d, at.Load(x + j), derivative), y + j);
      store(derivative, kept + j);
    }
  });
}

/// The same for an activation of GEMM, which must not be none.
template <bool kStreams, class T>
HWY_INLINE void activate_row(GemmActivation activation, std::int64_t n, const T* x, T* y, T* kept) {
  if (activation == GemmActivation::gelu) {
    activate_row<kStreams>(
        n, x, y, kept, [](auto d, auto v) HWY_ATTR { return Gelu(d, v); },
        [](auto d, auto v, auto& derivative) HWY_ATTR { return GeluAndDerivative(d, v, derivative); });
  } else {
    activate_row<kStreams>(
        n, x, y, kept, [](auto d, auto v) HWY_ATTR { return GeluTanh(d, v); },
        [](auto d, auto v, auto& derivative) HWY_ATTR { return GeluTanhAndDerivative(d, v, derivative); });
  }
}

/// Applies the activation, which must not be none, to finished rows [begin, end) while they are in the level-1 cache.
template <class T>
HWY_INLINE void activate_rows(const GemmBlock<T>& g, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    T* const c = g.c + i * g.ldc;
    activate_row<false>(g.activation, g.n, c, c, g.derivative != nullptr ? g.derivative + i * g.ldc : nullptr);
  }
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_GEMM_ACTIVATE_INL_H_
