#include "autograd/kernels/power.h"

#include <cmath>

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/dispatch.h"

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

// Stores doubles as T: the first `count` elements, or all if count is larger.
HWY_INLINE void StoreDoubles(WideVector wide, double* p, std::int64_t count) { StorePartial(wide, Wide(), p, count); }
HWY_INLINE void StoreDoubles(WideVector wide, float* p, std::int64_t count) {
  const hn::Rebind<float, Wide> narrow;
  StorePartial(hn::DemoteTo(narrow, wide), narrow, p, count);
}

// x^p as a function of x; the constructor chooses how to compute it for the exponent p.
struct Power {
  enum class Kind : std::uint8_t { product, odd, even, fraction };

  explicit Power(double p) : exponent(p) {
    constexpr double kMaxFactors = 64;  // of a product: at most 12 multiplications, less work than log and exp
    const bool whole = std::trunc(p) == p;
    if (whole && std::abs(p) <= kMaxFactors) {
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
void power_forward_block(std::int64_t n, const T* x, double exponent, T* y) {
  const Wide d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Power power(exponent);
  for (std::int64_t i = 0; i < n; i += lanes) StoreDoubles(power(LoadPartialAsDouble(d, x + i, n - i)), y + i, n - i);
}

// dx (+)= dy · p x^(p − 1)
template <class T>
void power_backward_block(std::int64_t n, const T* x, double exponent, const T* dy, Sink<T> dx) {
  const Wide d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Power power(exponent == 0 ? 0 : exponent - 1);
  for (std::int64_t i = 0; i < n; i += lanes) {
    const WideVector slope = hn::Mul(hn::Set(d, exponent), power(LoadPartialAsDouble(d, x + i, n - i)));
    WideVector v = hn::Mul(LoadPartialAsDouble(d, dy + i, n - i), slope);
    if (dx.add) v = hn::Add(LoadPartialAsDouble(d, dx.data + i, n - i), v);
    StoreDoubles(v, dx.data + i, n - i);
  }
}

MAKI_KERNEL(power_forward_block);
MAKI_KERNEL(power_backward_block);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

MAKI_EXPORT(power_forward_block);
MAKI_EXPORT(power_backward_block);

namespace {
constexpr std::int64_t kElementWork = 16;  // elementary operations per element: a logarithm and an exponential
}  // namespace

template <class T>
void power_forward(std::int64_t n, const T* x, double exponent, T* y) {
  const auto kernel = MAKI_DISPATCH(power_forward_block, T);
  parallel_ranges(n, kElementWork,
                  [&](std::int64_t begin, std::int64_t end) { kernel(end - begin, x + begin, exponent, y + begin); });
}
template void power_forward(std::int64_t, const float*, double, float*);
template void power_forward(std::int64_t, const double*, double, double*);

template <class T>
void power_backward(std::int64_t n, const T* x, double exponent, const T* dy, Sink<T> dx) {
  const auto kernel = MAKI_DISPATCH(power_backward_block, T);
  parallel_ranges(n, kElementWork, [&](std::int64_t begin, std::int64_t end) {
    const Sink<T> part{dx.data + begin, dx.add};
    kernel(end - begin, x + begin, exponent, dy + begin, part);
  });
}
template void power_backward(std::int64_t, const float*, double, const float*, Sink<float>);
template void power_backward(std::int64_t, const double*, double, const double*, Sink<double>);

}  // namespace maki::kernels
#endif
