// Checks that several families of ops share.
#pragma once

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

}  // namespace maki
