// How portable code calls a kernel that is compiled once for each SIMD target, for float and for double. The kernel is
// a function template, and three macros replace a wrapper per type:
//
//   namespace HWY_NAMESPACE {
//   template <class T>
//   void scale_block(std::int64_t n, const T* x, T factor, Sink<T> y) { … }
//   MAKI_KERNEL(scale_block);                                    // compiles it for both types, once per target
//   }
//
//   #if HWY_ONCE
//   MAKI_EXPORT(scale_block);                                    // lists what all targets have compiled
//   template <class T>
//   void scale(std::int64_t n, const T* x, T factor, Sink<T> y) {
//     const auto kernel = MAKI_DISPATCH(scale_block, T);         // a pointer to the one for T and the target in use
//     parallel_ranges(n, 1, [&](…) { kernel(…); });
//   }
//   #endif
//
// MAKI_DISPATCH throws Error if MAKI_TARGET is invalid, so it belongs at the entry of a kernel, before any parallel
// region. Functions that are not templates use MAKI_TARGETS and MAKI_ON_TARGET instead, which does not check
// MAKI_TARGET.
//
// Highway's own dispatch is not used: it is a state of the whole process, which other users of Highway share, and its
// library measures a clock for some milliseconds whenever a program starts.
#pragma once

#include <type_traits>

#include "autograd/kernels/simd/target.h"

namespace maki::kernels {

/// The two instances of a kernel.
template <class F32, class F64>
struct KernelPair {
  F32 f32;
  F64 f64;

  template <class T>
  auto of() const {
    require_target();
    if constexpr (std::is_same_v<T, float>) {
      return f32;
    } else {
      static_assert(std::is_same_v<T, double>);
      return f64;
    }
  }
};

#define MAKI_KERNEL(name)                                                            \
  inline KernelPair<decltype(&name<float>), decltype(&name<double>)> name##_pair() { \
    return {&name<float>, &name<double>};                                            \
  }                                                                                  \
  static_assert(true)  // so that a semicolon may follow

// In the order of kTargets in target.cpp; nullptr where a target is not built.
#define MAKI_TARGETS(name)                                               \
  constexpr decltype(&HWY_STATIC_DISPATCH(name)) name##_on_targets[] = { \
      HWY_CHOOSE_AVX3(name), HWY_CHOOSE_AVX2(name), HWY_CHOOSE_SSE4(name), HWY_CHOOSE_FALLBACK(name)}
#define MAKI_ON_TARGET(name) name##_on_targets[target_place()]

#define MAKI_EXPORT(name) MAKI_TARGETS(name##_pair)
#define MAKI_DISPATCH(name, T) MAKI_ON_TARGET(name##_pair)().template of<T>()

}  // namespace maki::kernels
