// Random tensors, copies and comparisons.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "autograd/core/check.h"
#include "autograd/core/philox.h"
#include "autograd/tensor.h"
#include "tests/max_or_nan.h"

namespace maki::tests {

/// A copy of x, whose type is T, in a block of its own and without a gradient.
template <class T>
Tensor copy_of(const Tensor& x) {
  return tensor(x.values<T>(), x.shape());
}

/// Normal random numbers, a function of the seed.
inline Tensor random_tensor(const Shape& shape, std::uint64_t seed, DType dtype = DType::float64) {
  const RandomStream stream(seed, RandomPurpose::test);
  Tensor x = empty(shape, dtype);
  dispatch(dtype, [&]<class T>() {
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      x.data<T>()[i] = static_cast<T>(stream.normal(static_cast<std::uint64_t>(i)));
    }
  });
  return x;
}

/// The largest |x − y| of elements x of a and y of b at the same place; NaN if there is one. Requires: equal shapes.
inline double largest_difference(const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape(), "largest_difference: shapes must be equal; got {} and {}", a.shape(), b.shape());
  double largest = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) largest = max_or_nan(largest, std::abs(a.at(i) - b.at(i)));
  return largest;
}

/// Whether a and b have the same shape, type and bits.
inline bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  const auto bytes = static_cast<std::size_t>(a.numel() * size_of(a.dtype()));
  if (a.dtype() == DType::int32) return std::memcmp(a.data<std::int32_t>(), b.data<std::int32_t>(), bytes) == 0;
  return dispatch(a.dtype(), [&]<class T>() { return std::memcmp(a.data<T>(), b.data<T>(), bytes) == 0; });
}

}  // namespace maki::tests
