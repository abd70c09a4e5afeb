#include <cmath>
#include <numbers>

#include "tests/ops/definitions.h"

namespace maki::tests::definitions {
namespace {

template <class Function>
Exact each(const Exact& x, const Function& f) {
  Exact y(x.shape());
  for (std::int64_t i = 0; i < x.numel(); ++i) y[i] = f(x[i]);
  return y;
}

// The index in a tensor of shape `part` of the element that broadcasting to `whole` puts at index i.
std::int64_t repeated(std::int64_t i, const Shape& whole, const Shape& part) {
  std::int64_t index = 0, stride = 1;
  for (int axis = 1; axis <= whole.rank(); ++axis) {
    const std::int64_t extent = whole[-axis];
    if (axis <= part.rank()) {
      index += (part[-axis] == 1 ? 0 : i % extent) * stride;
      stride *= part[-axis];
    }
    i /= extent;
  }
  return index;
}

template <class Function>
Exact pairs(const Exact& a, const Exact& b, const Function& f) {
  Exact y(broadcast("pairs", a.shape(), b.shape()));
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    y[i] = f(a[repeated(i, y.shape(), a.shape())], b[repeated(i, y.shape(), b.shape())]);
  }
  return y;
}

Number sigmoid_of(const Number& x) { return 1.0L / (1.0L + std::exp(-x)); }

// The standard library has no error function of a complex number; for an imaginary part as small as a complex step's
// the first term of its series is exact. erfc, because 1 + erf(x) loses all digits where x is far below 0.
Number normal_distribution(const Number& x) {
  const long double density = std::exp(-x.real() * x.real() / 2) / std::sqrt(2 * std::numbers::pi_v<long double>);
  return {std::erfc(-x.real() / std::numbers::sqrt2_v<long double>) / 2, density * x.imag()};
}

Number whole_power(const Number& x, int exponent) {
  Number y = 1;
  for (int i = 0; i < std::abs(exponent); ++i) y *= x;
  return exponent < 0 ? 1.0L / y : y;
}

}  // namespace

Exact add(const Exact& a, const Exact& b) {
  return pairs(a, b, [](const Number& x, const Number& y) { return x + y; });
}
Exact sub(const Exact& a, const Exact& b) {
  return pairs(a, b, [](const Number& x, const Number& y) { return x - y; });
}
Exact mul(const Exact& a, const Exact& b) {
  return pairs(a, b, [](const Number& x, const Number& y) { return x * y; });
}
Exact div(const Exact& a, const Exact& b) {
  return pairs(a, b, [](const Number& x, const Number& y) { return x / y; });
}

Exact add_gated(const Exact& a, const Exact& b, const Exact& gate) {
  Exact y(a.shape());
  for (std::int64_t i = 0; i < y.numel(); ++i) y[i] = a[i] + (1.0L + gate[i / a.shape().cols()]) * b[i];
  return y;
}

Exact where(const Exact& mask, const Exact& a, const Exact& b) {
  Exact y(broadcast("where", broadcast("where", mask.shape(), a.shape()), b.shape()));
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const bool chosen = mask.integer(repeated(i, y.shape(), mask.shape())) != 0;
    y[i] = chosen ? a[repeated(i, y.shape(), a.shape())] : b[repeated(i, y.shape(), b.shape())];
  }
  return y;
}

Exact neg(const Exact& x) {
  return each(x, [](const Number& v) { return -v; });
}
Exact scale(const Exact& x, double factor) {
  return each(x, [=](const Number& v) { return v * static_cast<long double>(factor); });
}
Exact exp(const Exact& x) {
  return each(x, [](const Number& v) { return std::exp(v); });
}
Exact log(const Exact& x) {
  return each(x, [](const Number& v) { return std::log(v); });
}
Exact sqrt(const Exact& x) {
  return each(x, [](const Number& v) { return std::sqrt(v); });
}
Exact tanh(const Exact& x) {
  return each(x, [](const Number& v) { return std::tanh(v); });
}
Exact sigmoid(const Exact& x) { return each(x, sigmoid_of); }
Exact relu(const Exact& x) {
  return each(x, [](const Number& v) { return v.real() > 0 ? v : 0; });
}
Exact relu_squared(const Exact& x) {
  return each(x, [](const Number& v) { return v.real() > 0 ? v * v : 0; });
}
Exact silu(const Exact& x) {
  return each(x, [](const Number& v) { return v * sigmoid_of(v); });
}
Exact elu_plus_one(const Exact& x) {
  return each(x, [](const Number& v) { return v.real() > 0 ? v + 1.0L : std::exp(v); });
}

Exact gelu(const Exact& x, Gelu form) {
  if (form == Gelu::erf) return each(x, [](const Number& v) { return v * normal_distribution(v); });
  return each(x, [](const Number& v) {
    const long double factor = std::sqrt(2 / std::numbers::pi_v<long double>);
    return 0.5L * v * (1.0L + std::tanh(factor * (v + 0.044715L * v * v * v)));
  });
}

Exact swiglu(const Exact& x) {
  const std::int64_t cols = x.shape().cols() / 2;
  return mul(silu(slice(x, -1, 0, cols)), slice(x, -1, cols, 2 * cols));
}

Exact abs(const Exact& x) {
  return each(x, [](const Number& v) { return v.real() < 0 ? -v : v; });
}

Exact pow(const Exact& x, double exponent) {
  return each(x, [=](const Number& v) {
    return exponent == std::round(exponent) ? whole_power(v, static_cast<int>(exponent))
                                            : std::exp(static_cast<long double>(exponent) * std::log(v));
  });
}

Exact clamp(const Exact& x, double low, double high) {
  return each(x, [=](const Number& v) { return v.real() < low ? low : v.real() > high ? high : v; });
}

Exact convert(const Exact& x, DType dtype) {
  if (dtype == DType::float64) return x;
  return each(x, [](const Number& v) { return Number(static_cast<float>(static_cast<double>(v.real())), v.imag()); });
}

Exact dropout(const Exact& x, double p) {
  Tape tape;
  const Recording on(tape, kRandom);
  return mul(x, Exact(maki::dropout(full(x.shape(), DType::float64, 1), p)));
}

}  // namespace maki::tests::definitions
