#include "autograd/kernels/power.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/power.cpp"
#include <hwy/foreach_target.h>

#include "autograd/kernels/simd/math-inl.h"
#include "autograd/kernels/simd/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Wide = hn::ScalableTag<double>;
using WideVector = hn::Vec<Wide>;

// The first `count` elements of a vector of doubles, which are doubles or floats in memory.
template <class T>
HWY_INLINE WideVector load(const T* p, std::size_t count) {
  const Wide d;
  const hn::Rebind<T, Wide> narrow;
  const bool whole = count == hn::Lanes(d);
  const auto v = whole ? hn::LoadU(narrow, p) : LoadPartial(narrow, p, count);
  if constexpr (std::is_same_v<T, float>) {
    return hn::PromoteTo(d, v);
  } else {
    return v;
  }
}
template <class T>
HWY_INLINE void store(WideVector wide, T* p, std::size_t count) {
  const hn::Rebind<T, Wide> narrow;
  const auto put = [=](auto v) HWY_ATTR {
    if (count == hn::Lanes(narrow)) {
      hn::StoreU(v, narrow, p);
    } else {
      StorePartial(v, narrow, p, count);
    }
  };
  if constexpr (std::is_same_v<T, float>) {
    put(hn::DemoteTo(narrow, wide));
  } else {
    put(wide);
  }
}

// x^p, the exponent prepared.
struct Power {
  enum class Kind : std::uint8_t { product, odd, even, fraction };

  explicit Power(double p) : exponent(p) {
    constexpr double kLongestProduct = 64;
    const bool whole = std::trunc(p) == p;
    if (whole && std::abs(p) <= kLongestProduct) {
      kind = Kind::product;
      factors = static_cast<int>(std::abs(p));
    } else {
      kind = !whole ? Kind::fraction : std::fmod(p, 2) == 0 ? Kind::even : Kind::odd;
    }
  }

  HWY_INLINE WideVector operator()(WideVector x) const {
    const Wide d;
    if (kind == Kind::product) return product(exponent < 0 ? hn::Div(hn::Set(d, 1.0), x) : x);
    const WideVector base = kind == Kind::fraction ? x : hn::Abs(x);  // the logarithm of a negative number is NaN
    const WideVector y = Exp(d, hn::Mul(hn::Set(d, exponent), Log(d, base)));
    return kind == Kind::odd ? hn::CopySign(y, x) : y;
  }

  // x · x · …, by repeated squaring
  HWY_INLINE WideVector product(WideVector x) const {
    WideVector y = hn::Set(Wide(), 1.0);
    for (int rest = factors; rest > 0; rest >>= 1) {
      if ((rest & 1) != 0) y = hn::Mul(y, x);
      x = hn::Mul(x, x);
    }
    return y;
  }

  double exponent;
  Kind kind;
  int factors = 0;
};

template <class T>
HWY_INLINE void forward(std::int64_t n, const T* x, double exponent, T* y) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Wide()));
  const Power power(exponent);
  for (std::int64_t i = 0; i < n; i += lanes) {
    const auto count = static_cast<std::size_t>(std::min(lanes, n - i));
    store(power(load(x + i, count)), y + i, count);
  }
}

// dx (+)= dy · p x^(p − 1)
template <class T>
HWY_INLINE void backward(std::int64_t n, const T* x, double exponent, const T* dy, Sink<T> dx) {
  const Wide d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Power power(exponent == 0 ? 0 : exponent - 1);
  for (std::int64_t i = 0; i < n; i += lanes) {
    const auto count = static_cast<std::size_t>(std::min(lanes, n - i));
    const WideVector slope = hn::Mul(hn::Set(d, exponent), power(load(x + i, count)));
    WideVector v = hn::Mul(load(dy + i, count), slope);
    if (dx.add) v = hn::Add(load(dx.data + i, count), v);
    store(v, dx.data + i, count);
  }
}

void power_forward_f32(std::int64_t n, const float* x, double exponent, float* y) { forward(n, x, exponent, y); }
void power_forward_f64(std::int64_t n, const double* x, double exponent, double* y) { forward(n, x, exponent, y); }
void power_backward_f32(std::int64_t n, const float* x, double exponent, const float* dy, Sink<float> dx) {
  backward(n, x, exponent, dy, dx);
}
void power_backward_f64(std::int64_t n, const double* x, double exponent, const double* dy, Sink<double> dx) {
  backward(n, x, exponent, dy, dx);
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

HWY_EXPORT(power_forward_f32);
HWY_EXPORT(power_forward_f64);
HWY_EXPORT(power_backward_f32);
HWY_EXPORT(power_backward_f64);

namespace {
constexpr std::int64_t kWork = 16;  // elementary operations per element
}  // namespace

template <class T>
void power_forward(std::int64_t n, const T* x, double exponent, T* y) {
  require_target();
  parallel_ranges(n, kWork, [&](std::int64_t begin, std::int64_t end) {
    if constexpr (std::is_same_v<T, float>) {
      HWY_DYNAMIC_DISPATCH(power_forward_f32)(end - begin, x + begin, exponent, y + begin);
    } else {
      HWY_DYNAMIC_DISPATCH(power_forward_f64)(end - begin, x + begin, exponent, y + begin);
    }
  });
}
template void power_forward(std::int64_t, const float*, double, float*);
template void power_forward(std::int64_t, const double*, double, double*);

template <class T>
void power_backward(std::int64_t n, const T* x, double exponent, const T* dy, Sink<T> dx) {
  require_target();
  parallel_ranges(n, kWork, [&](std::int64_t begin, std::int64_t end) {
    const Sink<T> part{dx.data + begin, dx.add};
    if constexpr (std::is_same_v<T, float>) {
      HWY_DYNAMIC_DISPATCH(power_backward_f32)(end - begin, x + begin, exponent, dy + begin, part);
    } else {
      HWY_DYNAMIC_DISPATCH(power_backward_f64)(end - begin, x + begin, exponent, dy + begin, part);
    }
  });
}
template void power_backward(std::int64_t, const float*, double, const float*, Sink<float>);
template void power_backward(std::int64_t, const double*, double, const double*, Sink<double>);

}  // namespace maki::kernels
#endif
