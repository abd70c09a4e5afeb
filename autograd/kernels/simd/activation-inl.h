// Activations on vectors and their derivatives. The elementwise kernels and the epilogue of GEMM share them, so that
// fused and composed ops give equal bits (but see SiluAndDerivative()):
//
//   Gelu      x Φ(x), Φ(x) = (1 + erf(x/√2)) / 2; derivative Φ(x) + x φ(x). Hendrycks and Gimpel 2016, arXiv:1606.08415
//   GeluTanh  x (1 + tanh u) / 2 = x σ(2u), u = √(2/π) (x + 0.044715 x³): the same paper; GPT-2
//   Silu      x σ(x); derivative σ(x) (1 + x (1 − σ(x)))
//
// At −Inf the activations are NaN (−Inf · 0), as in PyTorch. The derivatives are correct for every number and at both
// infinities: they multiply a factor that decays to 0 by one that grows, and clamp the latter where the product is
// already 0 in float64, because 0 · Inf would be NaN.
#if defined(MAKI_KERNELS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_ACTIVATION_INL_H_
#undef MAKI_KERNELS_ACTIVATION_INL_H_
#else
#define MAKI_KERNELS_ACTIVATION_INL_H_
#endif

#include "autograd/kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// x Φ(x)
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Gelu(D d, V x) {
  V unused;
  return hn::Mul(x, NormalCdf(d, x, unused));
}

/// x Φ(x), with the bits of Gelu(), and its derivative Φ(x) + x φ(x); both cost little more than one of them.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluAndDerivative(D d, V x, V& derivative) {
  V density;
  const V cdf = NormalCdf(d, x, density);
  const V slope = hn::Mul(Clamp(d, x, -40, 40), hn::Set(d, static_cast<hn::TFromD<D>>(0.39894228040143267794)));
  derivative = hn::MulAdd(slope, density, cdf);
  return hn::Mul(x, cdf);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluDerivative(D d, V x) {
  V derivative;
  GeluAndDerivative(d, x, derivative);
  return derivative;
}

/// x σ(2u)
template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluTanh(D d, V x) {
  using T = hn::TFromD<D>;
  // 2u = x (c + c · 0.044715 x²), c = 2 √(2/π)
  const V inner = hn::MulAdd(hn::Mul(x, x), hn::Set(d, static_cast<T>(0.071354816272600249)),
                             hn::Set(d, static_cast<T>(1.5957691216057307117)));
  return hn::Mul(x, Sigmoid(d, hn::Mul(x, inner)));
}

/// d/dx of x σ(2u): σ(2u) + x σ(2u) (1 − σ(2u)) · 2u′, with 2u′ = c + 3 c · 0.044715 x² and c = 2 √(2/π)
template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluTanhDerivative(D d, V x) {
  using T = hn::TFromD<D>;
  const V c = hn::Set(d, static_cast<T>(1.5957691216057307117));
  const V near = Clamp(d, x, -30, 30), square = hn::Mul(near, near);
  const V u = hn::Mul(near, hn::MulAdd(square, hn::Set(d, static_cast<T>(0.071354816272600249)), c));
  const V du = hn::MulAdd(square, hn::Set(d, static_cast<T>(0.21406444881780075)), c);
  V slope;
  const V s = SigmoidAndSlope(d, u, slope);
  return hn::MulAdd(hn::Mul(near, du), slope, s);
}

/// GeluTanh() and GeluTanhDerivative(), each computed for itself.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluTanhAndDerivative(D d, V x, V& derivative) {
  derivative = GeluTanhDerivative(d, x);
  return GeluTanh(d, x);
}

/// x σ(x)
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Silu(D d, V x) {
  return hn::Mul(x, Sigmoid(d, x));
}

/// x σ(x), and its derivative σ(x) + x σ(x) (1 − σ(x)). For x < 0 the value can differ from Silu(x) in the last bits,
/// because SigmoidAndSlope() multiplies where Sigmoid() divides.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SiluAndDerivative(D d, V x, V& derivative) {
  V slope;
  const V s = SigmoidAndSlope(d, x, slope);
  derivative = hn::MulAdd(Clamp(d, x, -1000, 1000), slope, s);
  return hn::Mul(x, s);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V SiluDerivative(D d, V x) {
  V derivative;
  SiluAndDerivative(d, x, derivative);
  return derivative;
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_ACTIVATION_INL_H_
