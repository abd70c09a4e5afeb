// The types of the numbers in files of other programs, and their conversion from and to float and double.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "autograd/core/bfloat16.h"
#include "data/io/file_system.h"

namespace maki {

/// The types of safetensors files. maki reads and writes the values of f16, bf16, f32 and f64. A tensor of another type
/// may be in a file only if the model does not need it (ReadingRules::ignored).
enum class NumberType : std::uint8_t {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64
};

/// The name in a safetensors file: "F32".
const char* to_string(NumberType type);
/// The inverse of to_string(); nullopt for an unknown name.
std::optional<NumberType> number_type_named(std::string_view name);
/// Bits of one number; below 8 for some.
std::uint64_t bits_of(NumberType type);
/// Whether read_numbers() and write_numbers() know the type: f16, bf16, f32, f64.
bool is_readable(NumberType type);

/// Converts little-endian numbers at any address to T, float or double. Conversions to a larger type are exact; f64 is
/// rounded to float as below. Throws Error unless is_readable(type) and `bytes` has as many numbers as `values`.
template <class T>
void read_numbers(NumberType type, Bytes bytes, std::span<T> values);
/// The inverse: numbers are rounded to nearest, ties to even (double to f16 and bf16 by way of float, that is twice);
/// those beyond the range of the type become infinite, and NaN remains NaN. Throws Error as above.
template <class T>
void write_numbers(NumberType type, std::span<const T> values, std::span<std::byte> bytes);

/// IEEE 754 binary16.
float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float value);
/// Unlike the kernels, which compute with zeros in their place, files have subnormal numbers.
BFloat16 float_to_bfloat(float value);

}  // namespace maki
