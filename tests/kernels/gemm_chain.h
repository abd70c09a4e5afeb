// The reference of the tests of GEMM: the exact bits of an element of a product on every target, computed by plain
// loops.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

#include "autograd/kernels/gemm/bf16.h"
#include "autograd/kernels/simd/target.h"

namespace maki::kernels {

/// How the target in use rounds a step of a chain: once (fused), product and sum separately, or as tiles of bfloat16
/// do.
enum class Rounding : std::uint8_t { fused, separate, tiles };

template <class T>
Rounding rounding() {
  const std::string name = target();
  if (name == "amx" && std::is_same_v<T, float>) return Rounding::tiles;
  return name == "sse4" || name == "floor" ? Rounding::separate : Rounding::fused;
}

/// x = high + middle + low, each with at most 8 significant bits (bfloat16).
struct Pieces {
  static float upper(std::uint32_t bits) { return std::bit_cast<float>(bits & 0xFFFF0000U); }
  static float nearest(float x) { return upper(std::bit_cast<std::uint32_t>(x) + 0x8000U); }
  explicit Pieces(float x) : high(nearest(x)), middle(nearest(x - high)), low(x - high - middle) {}
  float high, middle, low;
};

/// x + Σ a[p] b[p] over the steps [begin, end), at most 32, of one piece of a and one of b. As in a tile instruction,
/// two chains start at 0, one over the even steps and one over the odd.
inline float tile_step(const float* a, const float* b, std::int64_t begin, std::int64_t end, float Pieces::*piece_a,
                       float Pieces::*piece_b, float x) {
  float sums[2] = {0, 0};
  for (std::int64_t p = begin; p < end; ++p) {
    sums[p % 2] = std::fma(Pieces(a[p]).*piece_a, Pieces(b[p]).*piece_b, sums[p % 2]);
  }
  return x + (sums[0] + sums[1]);
}

/// x + Σ a[p] b[p] over k steps on tiles. Of every 128 steps the small products are added first, then the large ones.
inline float tile_chain(const float* a, const float* b, std::int64_t k, float x) {
  constexpr auto kHigh = &Pieces::high, kMiddle = &Pieces::middle, kLow = &Pieces::low;
  for (std::int64_t pass = 0; pass < k; pass += 128) {
    const std::int64_t end = std::min(k, pass + 128);
    const auto add = [&](std::int64_t p, float Pieces::*piece_a, float Pieces::*piece_b) {
      x = tile_step(a, b, p, std::min(end, p + 32), piece_a, piece_b, x);
    };
    for (std::int64_t p = pass; p < end; p += 32) {
      add(p, kHigh, kLow);
      add(p, kHigh, kMiddle);
      add(p, kMiddle, kMiddle);
      add(p, kMiddle, kHigh);
      add(p, kLow, kHigh);
    }
    for (std::int64_t p = pass; p < end; p += 32) add(p, kHigh, kHigh);
  }
  return x;
}

/// x rounded to bfloat16: to nearest, ties to even; a subnormal number becomes 0, a NaN a quiet one.
inline float bf16_nearest(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7F800000U) == 0) return std::bit_cast<float>(bits & 0x80000000U);
  if (std::isnan(x)) return Pieces::upper(bits | 0x00400000U);
  return Pieces::upper(bits + 0x7FFFU + (bits >> 16 & 1U));
}

/// An operand or a result in the mode in which subnormal numbers are 0.
inline float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x; }

/// x + y rounded to odd, as BFMMLA does: if it is not exact, the neighbour of the exact sum whose last bit is 1.
/// Subnormal numbers are 0.
inline float sum_to_odd(float x, float y) {
  const double a = flushed(x), b = flushed(y), sum = a + b, of_b = sum - a, error = (a - (sum - of_b)) + (b - of_b);
  auto bits = std::bit_cast<std::uint64_t>(sum);
  if (error != 0) {  // the part of a double that the exact sum reaches
    if ((error < 0) != (sum < 0)) --bits;
    bits |= 1;
  }
  const auto odd = std::bit_cast<double>(bits);
  auto nearest = static_cast<float>(odd);
  if (static_cast<double>(nearest) == odd) return flushed(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(odd)) nearest = std::nextafter(nearest, 0.0F);
  return flushed(std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) | 1U));
}

/// x + Σ a[p] b[p] over k steps of operands that are rounded to bfloat16, as BFMMLA adds them: two steps at a time.
inline float bf16_matrix_chain(const float* a, const float* b, std::int64_t k, float x) {
  const auto product = [&](std::int64_t p) { return p < k ? flushed(bf16_nearest(a[p]) * bf16_nearest(b[p])) : 0.0F; };
  for (std::int64_t p = 0; p < k; p += 2) x = sum_to_odd(x, sum_to_odd(product(p), product(p + 1)));
  return x;
}

/// x + Σ a[p] b[p] over k steps of operands that are rounded to bfloat16. The instructions for bfloat16 of x86 add 32
/// steps at a time, the even ones and the odd ones as two chains from 0; without instructions the steps are one chain.
inline float bf16_chain(const float* a, const float* b, std::int64_t k, float x, Bf16Unit unit) {
  if (unit == Bf16Unit::matrices) return bf16_matrix_chain(a, b, k, x);
  const auto add = [&](std::int64_t p, float sum) {
    return flushed(std::fma(bf16_nearest(a[p]), bf16_nearest(b[p]), sum));
  };
  for (std::int64_t begin = 0; begin < k; begin += 32) {
    const std::int64_t end = std::min(k, begin + 32);
    float sums[2] = {0, 0};
    for (std::int64_t p = begin; p < end; ++p) {
      float& sum = unit == Bf16Unit::floats ? x : sums[p % 2];
      sum = add(p, sum);
    }
    if (unit != Bf16Unit::floats) x = flushed(x + flushed(sums[0] + sums[1]));
  }
  return x;
}

/// c + bias + Σ a[p] b[p] over k steps, which is one chain.
inline float bf16_element_of(const float* a, const float* b, std::int64_t k, float c, float bias, Bf16Unit unit) {
  return bf16_chain(a, b, k, flushed(flushed(c) + flushed(bias)), unit);
}

/// x + Σ a[p] b[p] over k steps, as one chain.
template <class T>
T chain(const T* a, const T* b, std::int64_t k, T x, Rounding rounding) {
  if constexpr (std::is_same_v<T, float>) {
    if (rounding == Rounding::tiles) return tile_chain(a, b, k, x);
  }
  for (std::int64_t p = 0; p < k; ++p) x = rounding == Rounding::fused ? std::fma(a[p], b[p], x) : a[p] * b[p] + x;
  return x;
}

/// c + Σ a[p] b[p] + bias over k steps, in chains of 512. With tiles the first chain begins with the bias.
template <class T>
T element_of(const T* a, const T* b, std::int64_t k, T c, T bias, Rounding rounding) {
  const bool bias_first = rounding == Rounding::tiles;
  T x = c + chain(a, b, std::min<std::int64_t>(k, 512), bias_first ? bias : T{0}, rounding);
  for (std::int64_t p = 512; p < k; p += 512) {
    x += chain(a + p, b + p, std::min<std::int64_t>(k - p, 512), T{0}, rounding);
  }
  return bias_first ? x : x + bias;
}

}  // namespace maki::kernels
