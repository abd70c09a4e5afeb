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

/// y [n] = value(d, y) in place. If `kept` is not null, it receives the derivatives, and both come from
/// value_and_derivative(d, y, derivative).
template <class T, class F, class G>
HWY_INLINE void activate_row(std::int64_t n, T* y, T* kept, F value, G value_and_derivative) {
  for_each_vector<T>(n, [=](const auto& at, std::int64_t j) HWY_ATTR {
    const auto x = at.Load(y + j);
    if (kept == nullptr) {
      at.Store(value(at.d, x), y + j);
    } else {
      hn::Vec<hn::ScalableTag<T>> derivative;
      at.Store(value_and_derivative(at.d, x, derivative), y + j);
      at.Store(derivative, kept + j);
    }
  });
}

/// Applies the activation, which must not be none, to finished rows [begin, end) while they are in the level-1 cache.
template <class T>
HWY_INLINE void activate_rows(const GemmBlock<T>& g, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    T* c = g.c + i * g.ldc;
    T* kept = g.derivative != nullptr ? g.derivative + i * g.ldc : nullptr;
    if (g.activation == GemmActivation::gelu) {
      activate_row(
          g.n, c, kept, [](auto d, auto x) HWY_ATTR { return Gelu(d, x); },
          [](auto d, auto x, auto& derivative) HWY_ATTR { return GeluAndDerivative(d, x, derivative); });
    } else {
      activate_row(
          g.n, c, kept, [](auto d, auto x) HWY_ATTR { return GeluTanh(d, x); },
          [](auto d, auto x, auto& derivative) HWY_ATTR { return GeluTanhAndDerivative(d, x, derivative); });
    }
  }
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_GEMM_ACTIVATE_INL_H_
