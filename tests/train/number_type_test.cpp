// Numbers in the files of other programs: conversions from and to float16 and bfloat16.
#include "train/run/convert/number_type.h"

#include <array>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <vector>

#include "autograd/core/check.h"
#include "tests/catch.h"
#include "tests/files.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("every float16 is converted to float and back without a change") {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    INFO(bits);
    const bool is_nan = (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0;
    REQUIRE(std::isnan(value) == is_nan);
    if (is_nan) {
      REQUIRE(std::isnan(half_to_float(float_to_half(value))));
    } else {
      REQUIRE(float_to_half(value) == half);
    }
  }
  REQUIRE(half_to_float(0x3c00) == 1.0F);
  REQUIRE(half_to_float(0xc000) == -2.0F);
  REQUIRE(half_to_float(0x0001) == std::ldexp(1.0F, -24));
  REQUIRE(half_to_float(0x7bff) == 65504.0F);
}

TEST_CASE("float is rounded to the nearest float16, ties to even") {
  // Halfway between two neighbours, and just beside it, over the whole range.
  for (std::uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = half_to_float(bits), high = half_to_float(static_cast<std::uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;  // exact: a float has 13 more bits
    const auto even = static_cast<std::uint16_t>(bits + (bits & 1));
    INFO(bits);
    REQUIRE(float_to_half(middle) == even);
    REQUIRE(float_to_half(std::nextafter(middle, 0.0F)) == bits);
    REQUIRE(float_to_half(std::nextafter(middle, 1e9F)) == bits + 1);
    REQUIRE(float_to_half(-middle) == (even | 0x8000));
  }
  REQUIRE(float_to_half(65519.996F) == 0x7bff);
  REQUIRE(float_to_half(65520.0F) == 0x7c00);
  REQUIRE(float_to_half(std::numeric_limits<float>::infinity()) == 0x7c00);
  REQUIRE(float_to_half(-1e30F) == 0xfc00);
  REQUIRE(float_to_half(-0.0F) == 0x8000);
}

TEST_CASE("bfloat16 is the upper half of float, rounded to nearest, ties to even") {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto upper = static_cast<std::uint16_t>(bits);
    const float value = to_float(BFloat16{upper});
    INFO(bits);
    if (std::isnan(value)) {
      REQUIRE(std::isnan(to_float(float_to_bfloat(value))));
      continue;
    }
    REQUIRE(float_to_bfloat(value).bits == upper);
    if (std::isinf(value)) continue;
    const auto plus = [&](std::uint32_t more) { return std::bit_cast<float>((bits << 16) + more); };
    REQUIRE(float_to_bfloat(plus(0x7fff)).bits == upper);
    REQUIRE(float_to_bfloat(plus(0x8000)).bits == static_cast<std::uint16_t>(bits + (bits & 1)));
    REQUIRE(float_to_bfloat(plus(0x8001)).bits == static_cast<std::uint16_t>(bits + 1));
  }
  REQUIRE(to_float(BFloat16{0x3f80}) == 1.0F);
}

TEST_CASE("numbers are read and written at any address, in four types") {
  const std::vector<double> values = {0, -1.5, 3, 0.25, -1024};
  for (const NumberType type : {NumberType::f16, NumberType::bf16, NumberType::f32, NumberType::f64}) {
    INFO(to_string(type));
    const std::size_t size = values.size() * bits_of(type) / 8;
    std::vector<std::byte> memory(size + 1);
    const std::span<std::byte> odd = std::span(memory).subspan(1);
    write_numbers<double>(type, values, odd);
    std::vector<double> again(values.size());
    read_numbers<double>(type, odd, again);
    REQUIRE(again == values);
    std::vector<float> narrow(values.size());
    read_numbers<float>(type, odd, narrow);
    REQUIRE(std::vector<double>(narrow.begin(), narrow.end()) == values);
    REQUIRE(is_readable(type));
    const std::string wrong =
        fmt::format("numbers: 5 of type {} have {} bytes; got {}", to_string(type), size, size - 1);
    REQUIRE(error_message<Error>([&] { read_numbers<double>(type, odd.first(size - 1), again); }) == wrong);
    REQUIRE(error_message<Error>([&] { write_numbers<double>(type, values, odd.first(size - 1)); }) == wrong);
  }
  std::vector<float> none;
  REQUIRE_THAT(error_message<Error>([&] { read_numbers<float>(NumberType::i64, {}, none); }), ContainsSubstring("I64"));
}

TEST_CASE("types have names, and bits") {
  for (int i = 0; i <= static_cast<int>(NumberType::u64); ++i) {
    const auto type = static_cast<NumberType>(i);
    REQUIRE(number_type_named(to_string(type)) == type);
  }
  REQUIRE_FALSE(number_type_named("F33"));
  REQUIRE(bits_of(NumberType::f6_e3m2) == 6);
  REQUIRE(bits_of(NumberType::c64) == 64);
}
