#include "autograd/kernels/elementwise.h"

#include <type_traits>

#include "autograd/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/elementwise.cpp"
#include <hwy/foreach_target.h>

#include "autograd/kernels/simd/activation-inl.h"
#include "autograd/kernels/simd/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// y = function(d, x)
template <class T, class F>
HWY_INLINE void map(std::int64_t n, const T* x, T* y, F function) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(function(d, hn::LoadU(d, x + i)), d, y + i);
  if (i == n) return;
  const auto rest = static_cast<std::size_t>(n - i);
  StorePartial(function(d, LoadPartial(d, x + i, rest)), d, y + i, rest);
}

// dx (+)= dy · derivative(d, kept)
template <class T, class F>
HWY_INLINE void map_backward(std::int64_t n, const T* kept, const T* dy, Sink<T> dx, F derivative) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto v = hn::Mul(hn::LoadU(d, dy + i), derivative(d, hn::LoadU(d, kept + i)));
    if (dx.add) v = hn::Add(hn::LoadU(d, dx.data + i), v);
    hn::StoreU(v, d, dx.data + i);
  }
  if (i == n) return;
  const auto rest = static_cast<std::size_t>(n - i);
  auto v = hn::Mul(LoadPartial(d, dy + i, rest), derivative(d, LoadPartial(d, kept + i, rest)));
  if (dx.add) v = hn::Add(LoadPartial(d, dx.data + i, rest), v);
  StorePartial(v, d, dx.data + i, rest);
}

// y = f(x)
template <class T>
HWY_INLINE void forward(Unary f, std::int64_t n, const T* x, T* y) {
  switch (f) {
    case Unary::exp:
      return map(n, x, y, [](auto d, auto v) HWY_ATTR { return Exp(d, v); });
    case Unary::log:
      return map(n, x, y, [](auto d, auto v) HWY_ATTR { return Log(d, v); });
    case Unary::sqrt:
      return map(n, x, y, [](auto, auto v) HWY_ATTR { return hn::Sqrt(v); });
    case Unary::tanh:
      return map(n, x, y, [](auto d, auto v) HWY_ATTR { return Tanh(d, v); });
    case Unary::sigmoid:
      return map(n, x, y, [](auto d, auto v) HWY_ATTR { return Sigmoid(d, v); });
    case Unary::relu:  // by comparison, because Max would turn NaN into 0
      return map(n, x, y, [](auto d, auto v) HWY_ATTR { return hn::IfThenZeroElse(hn::Le(v, hn::Zero(d)), v); });
    case Unary::silu:
      return map(n, x, y, [](auto d, auto v) HWY_ATTR { return Silu(d, v); });
    case Unary::gelu:
      return map(n, x, y, [](auto d, auto v) HWY_ATTR { return Gelu(d, v); });
    case Unary::gelu_tanh:
      return map(n, x, y, [](auto d, auto v) HWY_ATTR { return GeluTanh(d, v); });
    case Unary::abs:
      return map(n, x, y, [](auto, auto v) HWY_ATTR { return hn::Abs(v); });
  }
}

// dx (+)= dy · f′, for y = f(x)
template <class T>
HWY_INLINE void backward(Unary f, std::int64_t n, const T* kept, const T* dy, Sink<T> dx) {
  // The argument of the lambdas is y = f(x) if keeps_output(f), else x; it is named accordingly.
  switch (f) {
    case Unary::exp:
      return map_backward(n, kept, dy, dx, [](auto, auto y) HWY_ATTR { return y; });
    case Unary::log:
      return map_backward(n, kept, dy, dx, [](auto d, auto x) HWY_ATTR { return hn::Div(hn::Set(d, T{1}), x); });
    case Unary::sqrt:
      return map_backward(n, kept, dy, dx,
                          [](auto d, auto y) HWY_ATTR { return hn::Div(hn::Set(d, static_cast<T>(0.5)), y); });
    case Unary::tanh:
      return map_backward(n, kept, dy, dx, [](auto d, auto y) HWY_ATTR {
        const auto one = hn::Set(d, T{1});
        return hn::Mul(hn::Sub(one, y), hn::Add(one, y));
      });
    case Unary::sigmoid:
      return map_backward(n, kept, dy, dx,
                          [](auto d, auto y) HWY_ATTR { return hn::Mul(y, hn::Sub(hn::Set(d, T{1}), y)); });
    case Unary::relu:
      return map_backward(n, kept, dy, dx, [](auto d, auto y) HWY_ATTR {
        return hn::IfThenZeroElse(hn::Le(y, hn::Zero(d)), hn::Set(d, T{1}));
      });
    case Unary::silu:
      return map_backward(n, kept, dy, dx, [](auto d, auto x) HWY_ATTR { return SiluDerivative(d, x); });
    case Unary::gelu:
      return map_backward(n, kept, dy, dx, [](auto d, auto x) HWY_ATTR { return GeluDerivative(d, x); });
    case Unary::gelu_tanh:
      return map_backward(n, kept, dy, dx, [](auto d, auto x) HWY_ATTR { return GeluTanhDerivative(d, x); });
    case Unary::abs:  // the sign of x; x itself where x is 0 or NaN
      return map_backward(n, kept, dy, dx, [](auto d, auto x) HWY_ATTR {
        const auto sign = hn::CopySign(hn::Set(d, T{1}), x);
        return hn::IfThenElse(hn::Gt(hn::Abs(x), hn::Zero(d)), sign, x);
      });
  }
}

template <class T>
HWY_INLINE void scale_block(std::int64_t n, const T* x, T factor, Sink<T> y) {
  map_backward(n, x, x, y, [factor](auto d, auto) HWY_ATTR { return hn::Set(d, factor); });
}

void unary_forward_f32(Unary f, std::int64_t n, const float* x, float* y) { forward(f, n, x, y); }
void unary_forward_f64(Unary f, std::int64_t n, const double* x, double* y) { forward(f, n, x, y); }
void unary_backward_f32(Unary f, std::int64_t n, const float* kept, const float* dy, Sink<float> dx) {
  backward(f, n, kept, dy, dx);
}
void unary_backward_f64(Unary f, std::int64_t n, const double* kept, const double* dy, Sink<double> dx) {
  backward(f, n, kept, dy, dx);
}
void scale_f32(std::int64_t n, const float* x, float factor, Sink<float> y) { scale_block(n, x, factor, y); }
void scale_f64(std::int64_t n, const double* x, double factor, Sink<double> y) { scale_block(n, x, factor, y); }

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

HWY_EXPORT(unary_forward_f32);
HWY_EXPORT(unary_forward_f64);
HWY_EXPORT(unary_backward_f32);
HWY_EXPORT(unary_backward_f64);
HWY_EXPORT(scale_f32);
HWY_EXPORT(scale_f64);

namespace {
// Elementary operations per element, which decide whether a parallel region pays.
constexpr std::int64_t work(Unary f) { return f == Unary::relu || f == Unary::sqrt || f == Unary::abs ? 1 : 8; }
}  // namespace

template <class T>
void unary_forward(Unary f, std::int64_t n, const T* x, T* y) {
  parallel_ranges(n, work(f), [&](std::int64_t begin, std::int64_t end) {
    if constexpr (std::is_same_v<T, float>) {
      HWY_DYNAMIC_DISPATCH(unary_forward_f32)(f, end - begin, x + begin, y + begin);
    } else {
      HWY_DYNAMIC_DISPATCH(unary_forward_f64)(f, end - begin, x + begin, y + begin);
    }
  });
}
template void unary_forward(Unary, std::int64_t, const float*, float*);
template void unary_forward(Unary, std::int64_t, const double*, double*);

template <class T>
void unary_backward(Unary f, std::int64_t n, const T* kept, const T* dy, Sink<T> dx) {
  parallel_ranges(n, work(f), [&](std::int64_t begin, std::int64_t end) {
    const Sink<T> part{dx.data + begin, dx.add};
    if constexpr (std::is_same_v<T, float>) {
      HWY_DYNAMIC_DISPATCH(unary_backward_f32)(f, end - begin, kept + begin, dy + begin, part);
    } else {
      HWY_DYNAMIC_DISPATCH(unary_backward_f64)(f, end - begin, kept + begin, dy + begin, part);
    }
  });
}
template void unary_backward(Unary, std::int64_t, const float*, const float*, Sink<float>);
template void unary_backward(Unary, std::int64_t, const double*, const double*, Sink<double>);

template <class T>
void scale(std::int64_t n, const T* x, T factor, Sink<T> y) {
  parallel_ranges(n, 1, [&](std::int64_t begin, std::int64_t end) {
    const Sink<T> part{y.data + begin, y.add};
    if constexpr (std::is_same_v<T, float>) {
      HWY_DYNAMIC_DISPATCH(scale_f32)(end - begin, x + begin, factor, part);
    } else {
      HWY_DYNAMIC_DISPATCH(scale_f64)(end - begin, x + begin, factor, part);
    }
  });
}
template void scale(std::int64_t, const float*, float, Sink<float>);
template void scale(std::int64_t, const double*, double, Sink<double>);

}  // namespace maki::kernels
#endif
