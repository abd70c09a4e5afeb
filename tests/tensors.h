// Copies and bitwise comparison of tensors.
#pragma once

#include <cstring>

#include "autograd/tensor.h"

namespace maki::tests {

/// A copy of x, whose type is T, in a block of its own and without a gradient.
template <class T>
Tensor copy_of(const Tensor& x) {
  return tensor(x.values<T>(), x.shape());
}

/// Whether a and b have the same shape, type and bits.
inline bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  const auto bytes = static_cast<std::size_t>(a.numel() * size_of(a.dtype()));
  if (a.dtype() == DType::int32) return std::memcmp(a.data<std::int32_t>(), b.data<std::int32_t>(), bytes) == 0;
  return dispatch(a.dtype(), [&]<class T>() { return std::memcmp(a.data<T>(), b.data<T>(), bytes) == 0; });
}

}  // namespace maki::tests
