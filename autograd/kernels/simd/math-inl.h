// exp, log, tanh, sigmoid and erf on vectors, accurate over the whole range, for float and double on every target:
//
//   Exp(d, x)  Log(d, x)  Tanh(d, x)  Sigmoid(d, x)  Erf(d, x)  NormalCdf(d, x, density)  MaxKeepNaN(a, b)
//
// for a Highway tag d and vectors of its type.
//
// NaN stays NaN. Out of range, Exp gives 0 and Inf; Log gives −Inf at 0 and NaN below; Tanh and Erf give ±1, and keep
// ±0. Subnormal arguments and results are handled. Highway's own functions (hwy/contrib/math 1.0.3) are not used
// because their Exp(NaN) is 0, Exp(200f) is 0 and Log(NaN) is 89. Do not include both: unqualified calls would be
// ambiguous.
//
// Method: arguments are reduced as in Cody and Waite, "Software Manual for the Elementary Functions" (1980). The
// polynomials are minimax, found with the Remez algorithm in 50 digits and rounded; each comment gives interval and
// error. The worst errors against 80-bit libm over 10⁶ arguments each, in units in the last place (the same within 0.3
// on every target; tests/kernels/math_test.cpp bounds them), and the speed in billions of elements per second on one
// core with AVX-512, g++ 12.2:
//
//            float   double   speed, float   double
//   Exp       1.1      1.0            3.6      1.2
//   Log       0.9      0.9            2.2      1.0
//   Tanh      2.5      2.5            3.2      1.1
//   Sigmoid   2.3      2.2            2.7      1.0
//   Erf       2.5      1.9            1.8      0.5
//
// NormalCdf has a relative error of 1e-6 (float) down to Φ(−5.6) and an absolute one of 1e-17 (double). Its speed is
// 1.5 and 0.4.
//
// Include it from a kernel file between foreach_target and its HWY_BEFORE_NAMESPACE; it is compiled once per target.
#if defined(MAKI_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_MATH_INL_H_
#undef MAKI_KERNELS_MATH_INL_H_
#else
#define MAKI_KERNELS_MATH_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// max(a, b), but NaN if either is NaN (Highway's Max drops a NaN in one operand order).
#if HWY_ARCH_ARM_A64
HWY_INLINE hn::Vec128<float> MaxKeepNaN(hn::Vec128<float> a, hn::Vec128<float> b) {
  return hn::Vec128<float>(vmaxq_f32(a.raw, b.raw));
}
HWY_INLINE hn::Vec128<double> MaxKeepNaN(hn::Vec128<double> a, hn::Vec128<double> b) {
  return hn::Vec128<double>(vmaxq_f64(a.raw, b.raw));
}
HWY_INLINE hn::Vec128<float> MinKeepNaN(hn::Vec128<float> a, hn::Vec128<float> b) {
  return hn::Vec128<float>(vminq_f32(a.raw, b.raw));
}
HWY_INLINE hn::Vec128<double> MinKeepNaN(hn::Vec128<double> a, hn::Vec128<double> b) {
  return hn::Vec128<double>(vminq_f64(a.raw, b.raw));
}
#else
template <class V>
HWY_INLINE V MaxKeepNaN(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
}
#endif

/// c0 + c1 x + c2 x² + … by Horner's rule.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Polynomial(D d, V /*x*/, double c0) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(c0));
}
template <class D, class V = hn::Vec<D>, class... Rest>
HWY_INLINE V Polynomial(D d, V x, double c0, Rest... rest) {
  return hn::MulAdd(Polynomial(d, x, rest...), x, hn::Set(d, static_cast<hn::TFromD<D>>(c0)));
}

/// min(x, high), max(x, low), and both; NaN stays NaN. If an operand is NaN, Min and Max return the second operand on
/// x86. On ARM64 they return the number, and the targets without SIMD (HWY_SCALAR, HWY_EMU128) can drop NaN in either
/// order: those compare, which makes Exp 10 to 33 % slower.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V AtMost(D d, V x, double high) {
  const V bound = hn::Set(d, static_cast<hn::TFromD<D>>(high));
#if HWY_ARCH_ARM_A64
  return MinKeepNaN(bound, x);
#elif HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  return hn::IfThenElse(hn::Gt(x, bound), bound, x);
#else
  return hn::Min(bound, x);
#endif
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V AtLeast(D d, V x, double low) {
  const V bound = hn::Set(d, static_cast<hn::TFromD<D>>(low));
#if HWY_ARCH_ARM_A64
  return MaxKeepNaN(bound, x);
#elif HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  return hn::IfThenElse(hn::Lt(x, bound), bound, x);
#else
  return hn::Max(bound, x);
#endif
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Clamp(D d, V x, double low, double high) {
  return AtMost(d, AtLeast(d, x, low), high);
}

/// The reduction x = k ln 2 + r with integer k and |r| <= ln 2 / 2, so that e^x = 2^k e^r.
template <class D>
struct ExpParts {
  hn::Vec<D> p;                        // e^r − 1
  hn::Vec<hn::RebindToUnsigned<D>> k;  // its low bits hold k + 2 · bias of the exponent
};

/// Reduces x, |x| < 1100 (double) or 180 (float). Adding 1.5·2^52 (float: 1.5·2^23) to x / ln 2 leaves the nearest
/// integer in the low bits. k ln 2 is subtracted in two parts, the first of which is exact.
template <class D, class V = hn::Vec<D>>
HWY_INLINE ExpParts<D> ExpReduce(D d, V x) {
  using T = hn::TFromD<D>;
  constexpr bool kIsFloat = sizeof(T) == 4;
  const V magic = hn::Set(d, static_cast<T>(kIsFloat ? 12582912.0 + 254 : 6755399441055744.0 + 2046));
  const V t = hn::MulAdd(x, hn::Set(d, static_cast<T>(1.4426950408889634074)), magic);
  const V k = hn::Sub(t, magic);
  V r = hn::NegMulAdd(k, hn::Set(d, static_cast<T>(kIsFloat ? 0.693145751953125 : 6.93147180369123816490e-01)), x);
  r = hn::NegMulAdd(k, hn::Set(d, static_cast<T>(kIsFloat ? 1.42860676533018704e-06 : 1.90821492927058770002e-10)), r);
  // (e^r − 1 − r) / r² on |r| <= 0.3468; relative error of e^r − 1: 1.4e-8 (float) and 2.7e-19 (double).
  V q;
  if constexpr (kIsFloat) {
    q = Polynomial(d, r, 0.49999997, 0.166665435, 0.0416672006, 0.00836654752, 0.00138825178);
  } else {
    q = Polynomial(d, r, 0.5, 0.16666666666666677, 0.041666666666666505, 0.008333333333321655, 0.001388888888896261,
                   0.00019841269886073377, 2.4801587172222277e-05, 2.7557244254232913e-06, 2.7557402780343925e-07,
                   2.510902445795853e-08, 2.0875327966055297e-09);
  }
  return {hn::MulAdd(hn::Mul(r, r), q, r), hn::BitCast(hn::RebindToUnsigned<D>(), t)};
}

/// e^x = 2^k e^r. The multiplication by 2^k is done in two factors, because k may be outside the range of exponents of
/// normal numbers on either side; the first product is exact and the second rounds once.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  using T = hn::TFromD<D>;
  constexpr bool kIsFloat = sizeof(T) == 4;
  constexpr int kMantissaBits = kIsFloat ? 23 : 52;
  const ExpParts<D> e = ExpReduce(d, Clamp(d, x, kIsFloat ? -104 : -746, kIsFloat ? 89 : 710));
  const auto half = hn::ShiftRight<1>(e.k);
  const V scaled = hn::Mul(hn::Add(e.p, hn::Set(d, T{1})), hn::BitCast(d, hn::ShiftLeft<kMantissaBits>(half)));
  return hn::Mul(scaled, hn::BitCast(d, hn::ShiftLeft<kMantissaBits>(hn::Sub(e.k, half))));
}

/// log x = k ln 2 + log m with m in [√½, √2). With f = m − 1 and s = f / (2 + f):
///   log m = f − (f²/2 − s (f²/2 + R(s²))),  R(z) = 2 (atanh(√z)/√z − 1).
/// From fdlibm (Ng et al., Sun Microsystems 1993).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Log(D d, V x) {
  using T = hn::TFromD<D>;
  constexpr bool kIsFloat = sizeof(T) == 4;
  constexpr int kMantissaBits = kIsFloat ? 23 : 52;
  const hn::RebindToUnsigned<D> du;
  using TU = hn::TFromD<decltype(du)>;
  const V one = hn::Set(d, T{1}), zero = hn::Zero(d);
  // Subnormal arguments are scaled into the normal range first.
  const auto small = hn::Lt(x, hn::Set(d, static_cast<T>(kIsFloat ? 0x1p-126 : 0x1p-1022)));
  const V normal = hn::IfThenElse(small, hn::Mul(x, hn::Set(d, static_cast<T>(kIsFloat ? 0x1p25 : 0x1p54))), x);
  const V shift = hn::IfThenElseZero(small, hn::Set(d, static_cast<T>(kIsFloat ? 25 : 54)));
  // e = k + exponent bias, as an integer. Written into the low bits of 2^52 (float: 2^23), it becomes a floating-point
  // number.
  const V sqrt_half = hn::Set(d, static_cast<T>(0.70710678118654752440));
  const auto bits = hn::BitCast(du, normal), bits_of_one = hn::BitCast(du, one);
  const auto e = hn::ShiftRight<kMantissaBits>(hn::Add(bits, hn::Sub(bits_of_one, hn::BitCast(du, sqrt_half))));
  const V magic = hn::Set(d, static_cast<T>(kIsFloat ? 0x1p23 : 0x1p52));
  const TU bias = kIsFloat ? 127 : 1023;
  const V k = hn::Sub(hn::Sub(hn::BitCast(d, hn::Or(e, hn::BitCast(du, magic))),
                              hn::Set(d, static_cast<T>((kIsFloat ? 0x1p23 : 0x1p52) + static_cast<double>(bias)))),
                      shift);
  const V m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<kMantissaBits>(hn::Sub(e, hn::Set(du, bias)))));

  const V f = hn::Sub(m, one);
  const V s = hn::Div(f, hn::Add(f, hn::Set(d, T{2})));
  const V z = hn::Mul(s, s), half_square = hn::Mul(hn::Mul(f, f), hn::Set(d, static_cast<T>(0.5)));
  // R(z) / z on s <= 0.1716; relative error of log m: 4.8e-12 (float) and 1.3e-18 (double).
  V r;
  if constexpr (kIsFloat) {
    r = Polynomial(d, z, 0.666666627, 0.400003344, 0.285372943, 0.235824361);
  } else {
    r = Polynomial(d, z, 0.6666666666666734, 0.39999999999413965, 0.28571428742562144, 0.22222198553785502,
                   0.1818356540724833, 0.15314021118751886, 0.14796261167990155);
  }
  r = hn::Mul(r, z);
  const V low =
      hn::MulAdd(s, hn::Add(half_square, r),
                 hn::Mul(k, hn::Set(d, static_cast<T>(kIsFloat ? 9.0580006145e-6 : 1.90821492927058770002e-10))));
  const V y = hn::MulAdd(k, hn::Set(d, static_cast<T>(kIsFloat ? 0.69313812256 : 6.93147180369123816490e-01)),
                         hn::Sub(f, hn::Sub(half_square, low)));
  const V infinity = hn::Inf(d);
  const V ends = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), hn::IfThenElse(hn::Eq(x, infinity), infinity, y));
  return hn::IfThenElse(hn::Ge(x, zero), ends, hn::NaN(d));
}

/// tanh x = −E / (2 + E) with E = e^(−2|x|) − 1 = 2^k p + (2^k − 1), which loses no precision near 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V x) {
  using T = hn::TFromD<D>;
  constexpr int kMantissaBits = sizeof(T) == 4 ? 23 : 52;
  const hn::RebindToUnsigned<D> du;
  const V a = AtMost(d, hn::Abs(x), 20);  // tanh rounds to 1 from 9.02 (float) and 19.1 (double) on
  const ExpParts<D> e = ExpReduce(d, hn::Mul(a, hn::Set(d, T{-2})));
  const auto bias = hn::Set(du, static_cast<hn::TFromD<decltype(du)>>(sizeof(T) == 4 ? 127 : 1023));
  const V power = hn::BitCast(d, hn::ShiftLeft<kMantissaBits>(hn::Sub(e.k, bias)));
  const V expm1 = hn::MulAdd(power, e.p, hn::Sub(power, hn::Set(d, T{1})));
  return hn::CopySign(hn::Div(expm1, hn::Add(expm1, hn::Set(d, T{2}))), x);
}

/// σ(x) = 1 / (1 + e^−x), computed from e^−|x|, so that the left tail is accurate down to the subnormal numbers.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, hn::TFromD<D>{1});
  const V e = Exp(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Ge(x, hn::Zero(d)), one, e), hn::Add(one, e));
}

/// σ(x), and its derivative σ(x) (1 − σ(x)) = e^−|x| / (1 + e^−|x|)², which loses no precision where σ is near 1. For
/// x < 0, σ(x) is rounded once more than in Sigmoid().
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SigmoidAndSlope(D d, V x, V& slope) {
  const V one = hn::Set(d, hn::TFromD<D>{1});
  const V e = Exp(d, hn::Neg(hn::Abs(x)));
  const V high = hn::Div(one, hn::Add(one, e)), low = hn::Mul(e, high);
  slope = hn::Mul(high, low);
  return hn::IfThenElse(hn::Ge(x, hn::Zero(d)), high, low);
}

/// erf x / x for `square` = x² <= 1; relative error 1.3e-9 (float) and 1.3e-19 (double).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ErfOverX(D d, V square) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return Polynomial(d, square, 1.12837911, -0.37612626, 0.112835854, -0.026853811, 0.00518832775, -0.000801019371,
                      7.85386073e-05);
  } else {
    return Polynomial(d, square, 1.1283791670955126, -0.3761263890318375, 0.11283791670954857, -0.026866170645072893,
                      0.005223977624780862, -0.000854832697874194, 0.0001205533103689036, -1.4925593506671345e-05,
                      1.646097281353705e-06, -1.6350025185895177e-07, 1.4657879597306717e-08, -1.136566502864451e-09,
                      5.945260200617797e-11);
  }
}

/// e^(a²) erfc a for a >= 1, to be multiplied by e^(−a²). The error of that product is 5.1e-9 (relative error 3.2e-7)
/// for float up to a = 4, and 7.5e-18 for double up to a = 6. Beyond that, where erfc is below 1.6e-8 and 2.2e-17 and
/// erf rounds to 1, only its order of magnitude is correct.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ScaledErfc(D d, V a) {
  using T = hn::TFromD<D>;
  if constexpr (sizeof(T) == 4) {
    return Polynomial(d, hn::Sub(AtMost(d, a, 4), hn::Set(d, T{2.5})), 0.21080634, -0.0743477494, 0.0249388479,
                      -0.00799861085, 0.00246365671, -0.000740038755, 0.000215830412, -5.30222133e-05, 1.29265254e-05,
                      -6.48996865e-06, 1.92129755e-06);
  } else {
    return Polynomial(d, hn::Sub(AtMost(d, a, 6), hn::Set(d, T{3.5})), 0.15529365560891528, -0.04132357782730067,
                      0.010661133221540489, -0.0026730744662370335, 0.000652685965433095, -0.0001554694723770549,
                      3.618219304904841e-05, -8.235841748853372e-06, 1.8388143324033348e-06, -4.0308561896896787e-07,
                      8.321035193035945e-08, -1.954899801521175e-08, 4.71595913679242e-09, 5.893662690419679e-10,
                      6.034494517670315e-10, -2.2055727387360699e-10, -2.095502692349044e-10, -6.537829202204778e-11,
                      6.124242049053188e-12, 1.0135330720091554e-11, 3.3004336676959992e-12, 5.056615186424827e-13,
                      3.317765441159067e-14);
  }
}

/// erf x: by ErfOverX() for |x| < 1, else 1 − e^(−x²) · ScaledErfc(|x|) with the sign of x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Erf(D d, V x) {
  const V one = hn::Set(d, hn::TFromD<D>{1}), a = hn::Abs(x), square = hn::Mul(x, x);
  const V far = hn::NegMulAdd(Exp(d, hn::Neg(square)), ScaledErfc(d, a), one);
  return hn::IfThenElse(hn::Lt(a, one), hn::Mul(x, ErfOverX(d, square)), hn::CopySign(far, x));
}

/// The cumulative normal distribution Φ(x) = (1 + erf(x/√2)) / 2, without cancellation in the left tail (see the errors
/// above), and `density` = φ(x) √(2π) = e^(−x²/2), which it computes anyway.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V NormalCdf(D d, V x, V& density) {
  using T = hn::TFromD<D>;
  const V half = hn::Set(d, static_cast<T>(0.5)), one = hn::Set(d, T{1});
  const V scaled = hn::Mul(x, hn::Set(d, static_cast<T>(0.70710678118654752440))), a = hn::Abs(scaled);
  const V square = hn::Mul(half, hn::Mul(x, x));
  density = Exp(d, hn::Neg(square));
  const V tail = hn::Mul(hn::Mul(half, density), ScaledErfc(d, a));
  const V far = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
  const V near = hn::MulAdd(hn::Mul(half, scaled), ErfOverX(d, square), half);
  return hn::IfThenElse(hn::Lt(a, one), near, far);
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_MATH_INL_H_
