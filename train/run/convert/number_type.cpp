#include "train/run/convert/number_type.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "autograd/core/check.h"

namespace maki {
namespace {

static_assert(std::endian::native == std::endian::little, "the numbers in files are little-endian");

struct TypeRow {
  const char* name;
  std::uint64_t bits;
};
// In the order of NumberType.
constexpr std::array kTypes = {TypeRow{"BOOL", 8},    TypeRow{"F4", 4},   TypeRow{"F6_E2M3", 6}, TypeRow{"F6_E3M2", 6},
                               TypeRow{"U8", 8},      TypeRow{"I8", 8},   TypeRow{"F8_E5M2", 8}, TypeRow{"F8_E4M3", 8},
                               TypeRow{"F8_E8M0", 8}, TypeRow{"I16", 16}, TypeRow{"U16", 16},    TypeRow{"F16", 16},
                               TypeRow{"BF16", 16},   TypeRow{"I32", 32}, TypeRow{"U32", 32},    TypeRow{"F32", 32},
                               TypeRow{"C64", 64},    TypeRow{"F64", 64}, TypeRow{"I64", 64},    TypeRow{"U64", 64}};
static_assert(kTypes.size() == static_cast<std::size_t>(NumberType::u64) + 1);

const TypeRow& row(NumberType type) { return kTypes[static_cast<std::size_t>(type)]; }

// Calls use(stored, to, from): the type in the file, and conversions from it to T and back.
template <class T, class Use>
void with_codec(NumberType type, const Use& use) {
  switch (type) {
    case NumberType::f16:
      return use(
          std::uint16_t{}, [](std::uint16_t x) { return static_cast<T>(half_to_float(x)); },
          [](T x) { return float_to_half(static_cast<float>(x)); });
    case NumberType::bf16:
      return use(
          BFloat16{}, [](BFloat16 x) { return static_cast<T>(to_float(x)); },
          [](T x) { return float_to_bfloat(static_cast<float>(x)); });
    case NumberType::f32:
      return use(
          float{}, [](float x) { return static_cast<T>(x); }, [](T x) { return static_cast<float>(x); });
    case NumberType::f64:
      return use(
          double{}, [](double x) { return static_cast<T>(x); }, [](T x) { return static_cast<double>(x); });
    default:
      fail("numbers of type {} are neither read nor written; use F16, BF16, F32 or F64", to_string(type));
  }
}

}  // namespace

const char* to_string(NumberType type) { return row(type).name; }

std::optional<NumberType> number_type_named(std::string_view name) {
  const auto* const found =
      std::ranges::find(kTypes, name, [](const TypeRow& each) { return std::string_view(each.name); });
  if (found == kTypes.end()) return std::nullopt;
  return static_cast<NumberType>(found - kTypes.begin());
}

std::uint64_t bits_of(NumberType type) { return row(type).bits; }

bool is_readable(NumberType type) {
  return type == NumberType::f16 || type == NumberType::bf16 || type == NumberType::f32 || type == NumberType::f64;
}

template <class T>
void read_numbers(NumberType type, Bytes bytes, std::span<T> values) {
  with_codec<T>(type, [&](auto stored, const auto& to, const auto&) {
    check(bytes.size() == values.size() * sizeof stored, "numbers: {} of type {} have {} bytes; got {}", values.size(),
          to_string(type), values.size() * sizeof stored, bytes.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::memcpy(&stored, bytes.data() + i * sizeof stored, sizeof stored);
      values[i] = to(stored);
    }
  });
}

template <class T>
void write_numbers(NumberType type, std::span<const T> values, std::span<std::byte> bytes) {
  with_codec<T>(type, [&](auto stored, const auto&, const auto& from) {
    check(bytes.size() == values.size() * sizeof stored, "numbers: {} of type {} have {} bytes; got {}", values.size(),
          to_string(type), values.size() * sizeof stored, bytes.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      stored = from(values[i]);
      std::memcpy(bytes.data() + i * sizeof stored, &stored, sizeof stored);
    }
  });
}

template void read_numbers(NumberType, Bytes, std::span<float>);
template void read_numbers(NumberType, Bytes, std::span<double>);
template void write_numbers(NumberType, std::span<const float>, std::span<std::byte>);
template void write_numbers(NumberType, std::span<const double>, std::span<std::byte>);

// 1 sign bit, 5 bits of exponent with bias 15, 10 bits of fraction.
float half_to_float(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const auto fraction = static_cast<float>(bits & 1023);
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) {
    // Infinity, or NaN with its payload in the upper bits of that of float.
    const std::uint32_t wide = (bits & 0x8000U) << 16 | 0x7f800000U | (bits & 1023U) << 13;
    return std::bit_cast<float>(wide);
  }
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00U | (bits >> 13 & 0x1ffU));
  const float size = std::fabs(value);
  if (size >= 65520.0F) return static_cast<std::uint16_t>(sign | 0x7c00U);  // half a step above the largest half, 65504
  // A half is an integer times 2^e, with 2^-24 for subnormal ones and at most 11 bits in the integer. nearbyint()
  // rounds ties to even; if it rounds up to 2048, the exponent below grows by the carry.
  int exponent = 0;
  std::frexp(size, &exponent);
  exponent = size > 0 ? std::max(exponent - 11, -24) : -24;
  const auto integer = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, -exponent)));
  const auto field = static_cast<std::uint32_t>(exponent + 24);
  return static_cast<std::uint16_t>(sign | ((field << 10) + integer));
}

BFloat16 float_to_bfloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return {static_cast<std::uint16_t>(bits >> 16 | 0x40U)};
  return {static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16)};
}

}  // namespace maki
