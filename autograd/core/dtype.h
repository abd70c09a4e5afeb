// The three element types, chosen at run time. dispatch() turns the run-time type into a template parameter; ops call
// it in their forward and backward bodies, so that kernels are templates that never see a DType.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "autograd/core/check.h"

namespace maki {

enum class DType : std::uint8_t { float32, float64, int32 };

/// Bytes per element.
constexpr std::int64_t size_of(DType dtype) { return dtype == DType::float64 ? 8 : 4; }
constexpr const char* to_string(DType dtype) {
  return dtype == DType::float32 ? "float32" : dtype == DType::float64 ? "float64" : "int32";
}

/// The DType of float, double or std::int32_t; no other type compiles.
template <class T>
constexpr DType dtype_of() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t>);
  return std::is_same_v<T, float> ? DType::float32 : std::is_same_v<T, double> ? DType::float64 : DType::int32;
}

/// Calls `body.operator()<float>()` or `body.operator()<double>()` and returns its result. Throws Error for int32,
/// which holds ids, targets and masks and takes part in no arithmetic.
template <class Body>
decltype(auto) dispatch(DType dtype, Body&& body) {
  check(dtype != DType::int32, "dispatch: arithmetic needs float32 or float64; got int32");
  if (dtype == DType::float32) return body.template operator()<float>();
  return body.template operator()<double>();
}

}  // namespace maki
