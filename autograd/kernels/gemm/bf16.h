// Which instructions compute the products that round their operands to bfloat16 (Gemm::rounds_operands).
#pragma once

#include <cstdint>

#include "autograd/core/bfloat16.h"

namespace maki::kernels {

enum class Bf16Unit : std::uint8_t {
  amx,     ///< AMX tiles
  pairs,   ///< AVX512_BF16: pairs of bfloat16 numbers; the same bits as AMX tiles
  floats,  ///< multiply-adds of float32 numbers: another order of summation, and rounding the operands saves no time
};

/// The unit that the target in use multiplies with: amx on the target amx, pairs on avx3 if the CPU has fast
/// instructions for them.
Bf16Unit bf16_unit();

/// Rounds n numbers. If `streams` is true, y begins at a cache line and is stored past the caches; the caller then
/// calls hwy::FlushStream() before another thread reads it.
using RoundToBf16 = void (*)(std::int64_t n, const float* x, BFloat16* y, bool streams);
/// The function that rounds exactly as the products of bf16_unit() round their operands. Throws Error if MAKI_TARGET is
/// invalid.
RoundToBf16 bf16_rounding();

/// For tests: bf16_unit() never returns `pairs` while `off` is true.
void turn_off_bf16_pairs(bool off);

}  // namespace maki::kernels
