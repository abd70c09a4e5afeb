// Rounding to bfloat16 on every target. Included once for every SIMD target.
#if defined(MAKI_KERNELS_SIMD_ROUND_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_SIMD_ROUND_INL_H_
#undef MAKI_KERNELS_SIMD_ROUND_INL_H_
#else
#define MAKI_KERNELS_SIMD_ROUND_INL_H_
#endif

#include <cstdint>
#include <hwy/highway.h>

#include "autograd/core/bfloat16.h"
#include "autograd/kernels/simd/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using RoundedFloats = hn::ScalableTag<float>;
using RoundedVec = hn::Vec<RoundedFloats>;
using RoundedHalves = hn::Rebind<std::uint16_t, RoundedFloats>;
inline constexpr std::int64_t kRoundedLanes = hn::MaxLanes(RoundedFloats());

/// x rounded to bfloat16 as VCVTNE2PS2BF16 does (Intel, Software Developer's Manual, volume 2), except for the signs of
/// zeros and of NaN: to nearest, ties to even; subnormal numbers become 0, and a NaN a quiet one.
HWY_INLINE RoundedVec round_to_bf16(RoundedVec x) {
  const RoundedFloats d;
  const hn::RebindToUnsigned<RoundedFloats> bits;
  // Shifts instead of masks, and x + x instead of NaN: where many registers are in use, GCC 12 ends with an internal
  // error if an operand of a bitwise operation or of a selection is a constant.
  const auto u = hn::BitCast(bits, x);
  const auto odd = hn::ShiftRight<31>(hn::ShiftLeft<15>(u));  // bit 16
  const auto nearest = hn::ShiftLeft<16>(hn::ShiftRight<16>(hn::Add(hn::Add(u, hn::Set(bits, 0x7FFFU)), odd)));
  const RoundedVec number = hn::IfThenElse(hn::IsNaN(x), hn::Add(x, x), hn::BitCast(d, nearest));
  const auto exponent = hn::ShiftRight<24>(hn::ShiftLeft<1>(u));
  return hn::IfThenElse(hn::RebindMask(d, hn::Eq(exponent, hn::Zero(bits))), hn::Zero(d), number);
}

/// The next vector of a row, rounded; zeros from `count` on.
HWY_INLINE RoundedVec rounded_load(const float* row, std::int64_t count) {
  return round_to_bf16(LoadPartial(RoundedFloats(), row, count));
}
HWY_INLINE RoundedVec rounded_load(const BFloat16* row, std::int64_t count) {
  const hn::RebindToUnsigned<RoundedFloats> bits;
  const auto upper = LoadPartial(RoundedHalves(), reinterpret_cast<const std::uint16_t*>(row), count);
  return hn::BitCast(RoundedFloats(), hn::ShiftLeft<16>(hn::PromoteTo(bits, upper)));
}

/// Numbers that are rounded already, as their bits in bfloat16; and stores the first `count` of them.
HWY_INLINE hn::Vec<RoundedHalves> upper_halves(RoundedVec rounded) {
  const auto bits = hn::BitCast(hn::RebindToUnsigned<RoundedFloats>(), rounded);
  return hn::TruncateTo(RoundedHalves(), hn::ShiftRight<16>(bits));
}
HWY_INLINE void store_rounded(RoundedVec rounded, BFloat16* to, std::int64_t count) {
  StorePartial(upper_halves(rounded), RoundedHalves(), reinterpret_cast<std::uint16_t*>(to), count);
}

/// Rounds n elements in place, n rounded up to whole vectors.
HWY_INLINE void round_to_bf16(float* x, std::int64_t n) {
  const RoundedFloats d;
  for (std::int64_t i = 0; i < n; i += static_cast<std::int64_t>(hn::MaxLanes(d))) {
    hn::StoreU(round_to_bf16(hn::LoadU(d, x + i)), d, x + i);
  }
}
/// Only float32 numbers are rounded.
HWY_INLINE void round_to_bf16(double* /*x*/, std::int64_t /*n*/) {}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_SIMD_ROUND_INL_H_
