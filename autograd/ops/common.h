// Checks and small helpers that several families of ops share.
#pragma once

#include <algorithm>
#include <optional>

#include "autograd/core/check.h"
#include "autograd/tensor.h"

namespace maki {

/// Throws Error unless both tensors are non-empty and have the same floating-point type.
inline void check_same_type(const char* op, const Tensor& a, const Tensor& b) {
  check(a && b, "{}: an input is an empty tensor; every input must hold values", op);
  check(a.dtype() == b.dtype() && a.dtype() != DType::int32,
        "{}: inputs must have the same type, float32 or float64; got {} and {}", op, to_string(a.dtype()),
        to_string(b.dtype()));
}

/// Throws Error unless the tensor is non-empty and has a floating-point type.
inline void check_floating(const char* op, const Tensor& x) { check_same_type(op, x, x); }

/// Throws Error unless the tensor is non-empty and holds int32; `what` names it in the message.
inline void check_integers(const char* op, const char* what, const Tensor& x) {
  check(static_cast<bool>(x), "{}: {} must hold values; got an empty tensor", op, what);
  check(x.dtype() == DType::int32, "{}: {} must be int32; got {}", op, what, to_string(x.dtype()));
}

/// The values of a tensor that may be empty.
template <class T>
const T* data_or_null(const Tensor& x) {
  return x ? x.data<T>() : nullptr;
}

/// The index of the first id that is neither in [0, n) nor `allowed`.
inline std::optional<std::int64_t> first_outside(const Tensor& ids, std::int64_t n,
                                                 std::optional<std::int32_t> allowed = std::nullopt) {
  const auto values = ids.values<std::int32_t>();
  const auto bad = std::ranges::find_if(
      values, [&](std::int32_t id) { return (id < 0 || id >= n) && !(allowed && id == *allowed); });
  if (bad == values.end()) return std::nullopt;
  return bad - values.begin();
}

}  // namespace maki
