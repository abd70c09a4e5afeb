#include "autograd/kernels/elementwise.h"

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/dispatch.h"

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
  for_each_vector<T>(n,
                     [=](const auto& at, std::int64_t i) HWY_ATTR { at.Store(function(at.d, at.Load(x + i)), y + i); });
}

// dx (+)= dy · derivative(d, kept)
template <class T, class F>
HWY_INLINE void map_backward(std::int64_t n, const T* kept, const T* dy, Sink<T> dx, F derivative) {
  for_each_vector<T>(n, [=](const auto& at, std::int64_t i) HWY_ATTR {
    put_vector(at, dx, i, hn::Mul(at.Load(dy + i), derivative(at.d, at.Load(kept + i))));
  });
}

// y = f(x)
template <class T>
void unary_forward_block(UnaryOp f, std::int64_t n, const T* x, T* y) {
  switch (f) {
    case UnaryOp::exp:
      return map(n, x, y, [](auto d, auto v) HWY_ATTR { return Exp(d, v); });
    case UnaryOp::log:
      return map(n, x, y, [](auto d, auto v) HWY_ATTR { return Log(d, v); });
    case UnaryOp::sqrt:
      return map(n, x, y, [](auto, auto v) HWY_ATTR { return hn::Sqrt(v); });
    case UnaryOp::tanh:
      return map(n, x, y, [](auto d, auto v) HWY_ATTR { return Tanh(d, v); });
    case UnaryOp::sigmoid:
      return map(n, x, y, [](auto d, auto v) HWY_ATTR { return Sigmoid(d, v); });
    case UnaryOp::relu:  // by comparison, because Max would turn NaN into 0
      return map(n, x, y, [](auto d, auto v) HWY_ATTR { return hn::IfThenZeroElse(hn::Le(v, hn::Zero(d)), v); });
    case UnaryOp::relu_squared:
      return map(n, x, y, [](auto d, auto v) HWY_ATTR {
        const auto positive = hn::IfThenZeroElse(hn::Le(v, hn::Zero(d)), v);
        return hn::Mul(positive, positive);
      });
    case UnaryOp::silu:
      return map(n, x, y, [](auto d, auto v) HWY_ATTR { return Silu(d, v); });
    case UnaryOp::gelu:
      return map(n, x, y, [](auto d, auto v) HWY_ATTR { return Gelu(d, v); });
    case UnaryOp::gelu_tanh:
      return map(n, x, y, [](auto d, auto v) HWY_ATTR { return GeluTanh(d, v); });
    case UnaryOp::abs:
      return map(n, x, y, [](auto, auto v) HWY_ATTR { return hn::Abs(v); });
    case UnaryOp::elu_plus_one:
      return map(n, x, y, [](auto d, auto v) HWY_ATTR {
        return hn::IfThenElse(hn::Gt(v, hn::Zero(d)), hn::Add(v, hn::Set(d, T{1})), Exp(d, v));
      });
  }
}

// dx (+)= dy · f′, for y = f(x)
template <class T>
void unary_backward_block(UnaryOp f, std::int64_t n, const T* kept, const T* dy, Sink<T> dx) {
  // The argument of the lambdas is y = f(x) if keeps_output(f), else x; it is named accordingly.
  switch (f) {
    case UnaryOp::exp:
      return map_backward(n, kept, dy, dx, [](auto, auto y) HWY_ATTR { return y; });
    case UnaryOp::log:
      return map_backward(n, kept, dy, dx, [](auto d, auto x) HWY_ATTR { return hn::Div(hn::Set(d, T{1}), x); });
    case UnaryOp::sqrt:
      return map_backward(n, kept, dy, dx,
                          [](auto d, auto y) HWY_ATTR { return hn::Div(hn::Set(d, static_cast<T>(0.5)), y); });
    case UnaryOp::tanh:
      return map_backward(n, kept, dy, dx, [](auto d, auto y) HWY_ATTR {
        const auto one = hn::Set(d, T{1});
        return hn::Mul(hn::Sub(one, y), hn::Add(one, y));
      });
    case UnaryOp::sigmoid:
      return map_backward(n, kept, dy, dx,
                          [](auto d, auto y) HWY_ATTR { return hn::Mul(y, hn::Sub(hn::Set(d, T{1}), y)); });
    case UnaryOp::relu:
      return map_backward(n, kept, dy, dx, [](auto d, auto y) HWY_ATTR {
        return hn::IfThenZeroElse(hn::Le(y, hn::Zero(d)), hn::Set(d, T{1}));
      });
    case UnaryOp::relu_squared:
      return map_backward(n, kept, dy, dx, [](auto d, auto x) HWY_ATTR {
        return hn::IfThenZeroElse(hn::Le(x, hn::Zero(d)), hn::Add(x, x));
      });
    case UnaryOp::silu:
      return map_backward(n, kept, dy, dx, [](auto d, auto x) HWY_ATTR { return SiluDerivative(d, x); });
    case UnaryOp::gelu:
      return map_backward(n, kept, dy, dx, [](auto d, auto x) HWY_ATTR { return GeluDerivative(d, x); });
    case UnaryOp::gelu_tanh:
      return map_backward(n, kept, dy, dx, [](auto d, auto x) HWY_ATTR { return GeluTanhDerivative(d, x); });
    case UnaryOp::abs:  // the sign of x; x itself where x is 0 or NaN
      return map_backward(n, kept, dy, dx, [](auto d, auto x) HWY_ATTR {
        const auto sign = hn::CopySign(hn::Set(d, T{1}), x);
        return hn::IfThenElse(hn::Gt(hn::Abs(x), hn::Zero(d)), sign, x);
      });
    case UnaryOp::elu_plus_one:  // the smaller of y and 1, NaN where y is NaN
      return map_backward(n, kept, dy, dx, [](auto d, auto y) HWY_ATTR {
        const auto one = hn::Set(d, T{1});
        return hn::IfThenElse(hn::Gt(y, one), one, y);
      });
  }
}

// y (+)= factor · x, as the gradient x times the constant derivative `factor`
template <class T>
void scale_block(std::int64_t n, const T* x, T factor, Sink<T> y) {
  map_backward(n, x, x, y, [factor](auto d, auto) HWY_ATTR { return hn::Set(d, factor); });
}

MAKI_KERNEL(unary_forward_block);
MAKI_KERNEL(unary_backward_block);
MAKI_KERNEL(scale_block);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

MAKI_EXPORT(unary_forward_block);
MAKI_EXPORT(unary_backward_block);
MAKI_EXPORT(scale_block);

namespace {
// Elementary operations per element, which decide whether a parallel region pays off.
constexpr std::int64_t work(UnaryOp f) {
  return f == UnaryOp::relu || f == UnaryOp::relu_squared || f == UnaryOp::sqrt || f == UnaryOp::abs ? 1 : 8;
}
}  // namespace

template <class T>
void unary_forward(UnaryOp f, std::int64_t n, const T* x, T* y) {
  const auto kernel = MAKI_DISPATCH(unary_forward_block, T);
  parallel_ranges(n, work(f),
                  [&](std::int64_t begin, std::int64_t end) { kernel(f, end - begin, x + begin, y + begin); });
}
template void unary_forward(UnaryOp, std::int64_t, const float*, float*);
template void unary_forward(UnaryOp, std::int64_t, const double*, double*);

template <class T>
void unary_backward(UnaryOp f, std::int64_t n, const T* kept, const T* dy, Sink<T> dx) {
  const auto kernel = MAKI_DISPATCH(unary_backward_block, T);
  parallel_ranges(n, work(f), [&](std::int64_t begin, std::int64_t end) {
    const Sink<T> part{dx.data + begin, dx.add};
    kernel(f, end - begin, kept + begin, dy + begin, part);
  });
}
template void unary_backward(UnaryOp, std::int64_t, const float*, const float*, Sink<float>);
template void unary_backward(UnaryOp, std::int64_t, const double*, const double*, Sink<double>);

template <class T>
void scale(std::int64_t n, const T* x, T factor, Sink<T> y) {
  const auto kernel = MAKI_DISPATCH(scale_block, T);
  parallel_ranges(n, 1, [&](std::int64_t begin, std::int64_t end) {
    const Sink<T> part{y.data + begin, y.add};
    kernel(end - begin, x + begin, factor, part);
  });
}
template void scale(std::int64_t, const float*, float, Sink<float>);
template void scale(std::int64_t, const double*, double, Sink<double>);

}  // namespace maki::kernels
#endif
