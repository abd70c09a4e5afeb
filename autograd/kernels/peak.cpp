#include "autograd/kernels/peak.h"

#include <type_traits>

#include "autograd/kernels/target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/peak.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A multiply-add takes 4 cycles and a core begins two in each: 8 chains at least, and registers for 12 where there are
// 16. Cores that begin four in a cycle have 32.
inline constexpr int kChains = HWY_ARCH_X86 ? 12 : 16;

template <class T>
HWY_INLINE std::int64_t flop() {
  return 2 * kChains * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}

template <class T>
HWY_INLINE double chains(std::int64_t rounds) {
  const hn::ScalableTag<T> d;
  const auto half = hn::Set(d, T{0.5});
  hn::Vec<decltype(d)> x[kChains];
  // Different beginnings, or the compiler would run one chain for all.
  MAKI_UNROLL for (int i = 0; i < kChains; ++i) x[i] = hn::Set(d, static_cast<T>(i));
  for (std::int64_t round = 0; round < rounds; ++round) {
    MAKI_UNROLL for (int i = 0; i < kChains; ++i) x[i] = hn::MulAdd(x[i], half, half);
  }
  HWY_ALIGN T ends[hn::MaxLanes(d)];
  double sum = 0;
  for (int i = 0; i < kChains; ++i) {
    hn::Store(x[i], d, ends);
    for (std::size_t lane = 0; lane < hn::Lanes(d); ++lane) sum += static_cast<double>(ends[lane]);
  }
  return sum / (static_cast<double>(flop<T>()) / 2);
}

std::int64_t flop_f32() { return flop<float>(); }
std::int64_t flop_f64() { return flop<double>(); }
double chains_f32(std::int64_t rounds) { return chains<float>(rounds); }
double chains_f64(std::int64_t rounds) { return chains<double>(rounds); }

void stream_f32(std::int64_t n, const float* x, float* y) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::Stream(hn::Load(d, x + i), d, y + i);
  for (; i < n; ++i) y[i] = x[i];
  hwy::FlushStream();
}

double sum_f32(std::int64_t n, const float* x) {
  const hn::ScalableTag<float> d;
  constexpr std::int64_t kStreams = 8, kAhead = 128, kLine = 16, kLanes = hn::MaxLanes(d);
  const std::int64_t length = n / kStreams / kLine * kLine;
  hn::Vec<decltype(d)> sum[kStreams];
  MAKI_UNROLL for (int s = 0; s < kStreams; ++s) sum[s] = hn::Zero(d);
  for (std::int64_t line = 0; line < length; line += kLine) {
    MAKI_UNROLL for (int s = 0; s < kStreams; ++s) {
      const float* const from = x + s * length + line;
      hwy::Prefetch(from + kAhead);
      MAKI_UNROLL for (std::int64_t i = 0; i < kLine; i += kLanes) sum[s] = hn::Add(sum[s], hn::Load(d, from + i));
    }
  }
  HWY_ALIGN float lanes[kLanes];
  double total = 0;
  for (int s = 0; s < kStreams; ++s) {
    hn::Store(sum[s], d, lanes);
    for (std::int64_t i = 0; i < kLanes; ++i) total += static_cast<double>(lanes[i]);
  }
  for (std::int64_t i = kStreams * length; i < n; ++i) total += static_cast<double>(x[i]);
  return total;
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

HWY_EXPORT(flop_f32);
HWY_EXPORT(flop_f64);
HWY_EXPORT(chains_f32);
HWY_EXPORT(chains_f64);
HWY_EXPORT(stream_f32);
HWY_EXPORT(sum_f32);

template <class T>
std::int64_t multiply_add_flop() {
  require_target();
  if constexpr (std::is_same_v<T, float>) return HWY_DYNAMIC_DISPATCH(flop_f32)();
  return HWY_DYNAMIC_DISPATCH(flop_f64)();
}

template <class T>
double multiply_add_chains(std::int64_t rounds) {
  if constexpr (std::is_same_v<T, float>) return HWY_DYNAMIC_DISPATCH(chains_f32)(rounds);
  return HWY_DYNAMIC_DISPATCH(chains_f64)(rounds);
}

void stream_copy(std::int64_t n, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(stream_f32)(n, x, y); }

double stream_sum(std::int64_t n, const float* x) { return HWY_DYNAMIC_DISPATCH(sum_f32)(n, x); }

template std::int64_t multiply_add_flop<float>();
template std::int64_t multiply_add_flop<double>();
template double multiply_add_chains<float>(std::int64_t);
template double multiply_add_chains<double>(std::int64_t);

}  // namespace maki::kernels
#endif
