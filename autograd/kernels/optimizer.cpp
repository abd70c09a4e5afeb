#include "autograd/kernels/optimizer.h"

#include <algorithm>
#include <cmath>
#include <hwy/cache_control.h>
#include <type_traits>

#include "autograd/core/parallel.h"
#include "autograd/kernels/gemm/bf16.h"
#include "autograd/kernels/simd/dispatch.h"
#include "autograd/kernels/simd/stream.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/optimizer.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/simd/lane_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// x, or 0 where |x| < smallest. NaN stays NaN.
template <class D, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE V Flush(D d, V x, T smallest) {
  return hn::IfThenZeroElse(hn::Lt(hn::Abs(x), hn::Set(d, smallest)), x);
}

// Prefetches each of the arrays, unless it is null, 2 KiB beyond its element `i`. By itself an Intel Xeon follows so
// many arrays at 50 GB/s; with this it reaches 57 (Adam, two threads).
template <class T, class... Rest>
HWY_INLINE void read_ahead(std::int64_t i, const T* array, const Rest*... rest) {
  constexpr std::int64_t kAhead = 2048 / std::int64_t{sizeof(T)};
  if (array != nullptr) hwy::Prefetch(array + i + kAhead);
  if constexpr (sizeof...(rest) > 0) read_ahead(i, rest...);
}

// One vector of SGD.
template <class Vector, class T>
HWY_INLINE void sgd_vector(const Vector& at, const SgdStep& s, const T* gradient, T* value, T* velocity) {
  const auto d = at.d;
  const auto rate = hn::Set(d, static_cast<T>(s.learning_rate)), momentum = hn::Set(d, static_cast<T>(s.momentum));
  const auto p = at.Load(value);
  auto g = hn::Mul(hn::Set(d, static_cast<T>(s.grad_scale)), at.Load(gradient));
  if (s.weight_decay != 0) g = hn::MulAdd(hn::Set(d, static_cast<T>(s.weight_decay)), p, g);
  if (velocity != nullptr) {
    const auto v = Flush(d, hn::MulAdd(momentum, at.Load(velocity), g), kSmallestFirstMoment<T>);
    at.Store(v, velocity);
    g = s.nesterov ? hn::MulAdd(momentum, v, g) : v;
  }
  at.Store(hn::NegMulAdd(rate, g, p), value);
}

// The coefficients of an Adam step in the type of the arithmetic, computed once for all elements. If they were computed
// in the loop, it would take 1.08 ns per element instead of 0.59 (AVX-512, one thread).
template <class T>
struct AdamCoefficients {
  explicit AdamCoefficients(const AdamStep& s)
      : grad_scale(static_cast<T>(s.grad_scale)),
        keep(static_cast<T>(s.decoupled ? 1 - s.learning_rate * s.weight_decay : 1)),
        l2(static_cast<T>(s.decoupled ? 0 : s.weight_decay)),
        beta2(static_cast<T>(s.beta2)),
        new1(static_cast<T>(1 - s.beta1)),
        new2(static_cast<T>(1 - s.beta2)),
        root_scale(static_cast<T>(1 / std::sqrt(s.correction2))),
        eps(static_cast<T>(s.eps)),
        rate(static_cast<T>(s.learning_rate / s.correction1)) {}
  T grad_scale, keep, l2, beta2, new1, new2, root_scale, eps, rate;
};

// One vector of Adam or AdamW.
template <class Vector, class T>
HWY_INLINE void adam_vector(const Vector& at, const AdamCoefficients<T>& s, const T* gradient, T* value, T* exp_avg,
                            T* exp_avg_sq) {
  const auto d = at.d;
  const auto p = at.Load(value);
  auto m = at.Load(exp_avg), v = at.Load(exp_avg_sq);
  const auto scaled = hn::Mul(hn::Set(d, s.grad_scale), at.Load(gradient));
  const auto g = hn::MulAdd(hn::Set(d, s.l2), p, scaled);
  m = Flush(d, hn::MulAdd(hn::Set(d, s.new1), hn::Sub(g, m), m), kSmallestFirstMoment<T>);
  v = Flush(d, hn::MulAdd(hn::Set(d, s.beta2), v, hn::Mul(hn::Mul(g, g), hn::Set(d, s.new2))),
            kSmallestSecondMoment<T>);
  at.Store(m, exp_avg);
  at.Store(v, exp_avg_sq);
  const auto root = hn::MulAdd(hn::Sqrt(v), hn::Set(d, s.root_scale), hn::Set(d, s.eps));
  const auto kept = hn::Mul(p, hn::Set(d, s.keep));
  at.Store(hn::NegMulAdd(hn::Set(d, s.rate), hn::Div(m, root), kept), value);
}

template <class T>
void sgd(const SgdStep& s, std::int64_t n, const T* gradient, T* value, T* velocity) {
  for_each_vector<T>(n, [&](const auto& at, std::int64_t i) HWY_ATTR {
    read_ahead(i, gradient, value, velocity);
    sgd_vector(at, s, gradient + i, value + i, velocity == nullptr ? nullptr : velocity + i);
  });
}

template <class T>
void adam(const AdamStep& step, std::int64_t n, const T* gradient, T* value, T* m, T* v) {
  const AdamCoefficients<T> s(step);
  for_each_vector<T>(n, [=](const auto& at, std::int64_t i) HWY_ATTR {
    read_ahead(i, gradient, value, m, v);
    adam_vector(at, s, gradient + i, value + i, m + i, v + i);
  });
}

// Σ x² in double.
template <class T>
double squares(std::int64_t n, const T* x) {
  return sum_in_lanes<double>(0, n,
                              [=](const auto& at, std::int64_t i, auto sum) HWY_ATTR {
                                read_ahead(i, x);
                                const auto v = at.LoadAsDouble(x + i);
                                return hn::MulAdd(v, v, sum);
                              })
      .total();
}

MAKI_KERNEL(sgd);
MAKI_KERNEL(adam);
MAKI_KERNEL(squares);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

MAKI_EXPORT(sgd);
MAKI_EXPORT(adam);
MAKI_EXPORT(squares);

namespace {

// Calls body(begin, size) for every block of n elements; `work` is the cost of an element in elementary operations.
template <class Body>
void for_blocks(std::int64_t n, std::int64_t work, const Body& body) {
  parallel_for(ceil_div(n, kUpdateBlock), kUpdateBlock * work, [&](std::int64_t block) {
    const std::int64_t begin = block * kUpdateBlock;
    body(begin, std::min(kUpdateBlock, n - begin));
  });
}

/// Calls update(begin, size) for parts of n values that together are all of them, and stores the values of each part in
/// `rounded`, unless that is null, while they are in the level-1 cache: from the level-2 cache, where those of a whole
/// block are, an update of gpt2 takes 1.02 times as long.
template <class T, class Update>
void update_and_round(std::int64_t n, std::int64_t work, const T* value, BFloat16* rounded, const Update& update) {
  constexpr std::int64_t kPart = 2048;
  const bool streams = rounded != nullptr && goes_past_caches(rounded, kPart, n * std::int64_t{sizeof(BFloat16)});
  [[maybe_unused]] const RoundToBf16 round = rounded != nullptr ? bf16_rounding() : nullptr;
  for_blocks(n, work, [&](std::int64_t begin, std::int64_t size) {
    for (std::int64_t at = begin; at < begin + size; at += kPart) {
      const std::int64_t count = std::min(kPart, begin + size - at);
      update(at, count);
      if constexpr (std::is_same_v<T, float>) {
        if (rounded != nullptr) round(count, value + at, rounded + at, streams);
      }
    }
    if (streams) hwy::FlushStream();
  });
}

}  // namespace

template <class T>
void sgd_step(const SgdStep& step, std::int64_t n, const T* gradient, T* value, T* velocity, BFloat16* rounded) {
  const auto kernel = MAKI_DISPATCH(sgd, T);
  update_and_round(n, 1, value, rounded, [&](std::int64_t at, std::int64_t count) {
    kernel(step, count, gradient + at, value + at, velocity == nullptr ? nullptr : velocity + at);
  });
}

template <class T>
void adam_step(const AdamStep& step, std::int64_t n, const T* gradient, T* value, T* exp_avg, T* exp_avg_sq,
               BFloat16* rounded) {
  const auto kernel = MAKI_DISPATCH(adam, T);
  update_and_round(n, 4, value, rounded, [&](std::int64_t at, std::int64_t count) {
    kernel(step, count, gradient + at, value + at, exp_avg + at, exp_avg_sq + at);
  });
}

void round_values(std::int64_t n, const float* value, BFloat16* rounded) {
  update_and_round(n, 1, value, rounded, [](std::int64_t, std::int64_t) {});
}

std::int64_t sum_of_squares_scratch(std::int64_t n) { return ceil_div(n, kUpdateBlock); }

template <class T>
void sums_of_squares(std::int64_t n, const T* x, double* sums) {
  const auto kernel = MAKI_DISPATCH(squares, T);
  for_blocks(n, 1,
             [&](std::int64_t begin, std::int64_t size) { sums[begin / kUpdateBlock] = kernel(size, x + begin); });
}

template <class T>
double sum_of_squares(std::int64_t n, const T* x, double* scratch) {
  sums_of_squares(n, x, scratch);
  double total = 0;
  for (std::int64_t block = 0; block < sum_of_squares_scratch(n); ++block) total += scratch[block];
  return total;
}

template void sgd_step(const SgdStep&, std::int64_t, const float*, float*, float*, BFloat16*);
template void sgd_step(const SgdStep&, std::int64_t, const double*, double*, double*, BFloat16*);
template void adam_step(const AdamStep&, std::int64_t, const float*, float*, float*, float*, BFloat16*);
template void adam_step(const AdamStep&, std::int64_t, const double*, double*, double*, double*, BFloat16*);
template void sums_of_squares(std::int64_t, const float*, double*);
template void sums_of_squares(std::int64_t, const double*, double*);
template double sum_of_squares(std::int64_t, const float*, double*);
template double sum_of_squares(std::int64_t, const double*, double*);

}  // namespace maki::kernels
#endif
