// x^p with a constant exponent, by Log and Exp (simd/math-inl.h) in double, also for float: an error of x^p grows with
// |p log x|, and in float it would reach 5e-6. Powers with integer exponents up to ±64 are computed by repeated
// multiplication, which is eight times as fast.
//
// Measured relative errors: float 6e-8, half a unit in the last place; double 2.4e-16 · max(1, |p log x|), which is at
// most 1.7e-13, and by multiplication less than 2e-16 · |p|. Billions of elements per second on one core with AVX-512:
// squares 3.2 (float) and 2.9 (double), fractional exponents 0.36 and 0.43.
// T is float or double. No argument is checked; the only exception is Error if MAKI_TARGET is invalid (simd/target.h).
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

/// y = x^exponent with a finite exponent; x, y [n]. A negative x, including −Inf, gives NaN unless the exponent is an
/// integer. x^0 is 1 for every x, including NaN; 0 to a negative exponent is ±Inf.
template <class T>
void power_forward(std::int64_t n, const T* x, double exponent, T* y);
/// dx = dy · exponent · x^(exponent − 1), and dy · 0 for the exponent 0; added if the sink adds. All are [n].
template <class T>
void power_backward(std::int64_t n, const T* x, double exponent, const T* dy, Sink<T> dx);

}  // namespace maki::kernels
