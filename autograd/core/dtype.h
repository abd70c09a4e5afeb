// The three element types, chosen at run time. dispatch() turns the run-time type into a compile-time one; it stands in
// the two bodies of an op and nowhere below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "autograd/core/check.h"

namespace maki {

enum class DType : std::uint8_t { float32, float64, int32 };

constexpr std::int64_t size_of(DType dtype) { return dtype == DType::float64 ? 8 : 4; }
constexpr const char* to_string(DType dtype) {
  return dtype == DType::float32 ? "float32" : dtype == DType::float64 ? "float64" : "int32";
}

template <class T>
constexpr DType dtype_of() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t>);
  return std::is_same_v<T, float> ? DType::float32 : std::is_same_v<T, double> ? DType::float64 : DType::int32;
}

/// Calls body.operator()<float>() or <double>(). int32 (ids, targets, lengths) is never computed with.
template <class Body>
decltype(auto) dispatch(DType dtype, Body&& body) {
  check(dtype != DType::int32, "dispatch: arithmetic needs float32 or float64; got int32");
  if (dtype == DType::float32) return body.template operator()<float>();
  return body.template operator()<double>();
}

}  // namespace maki
