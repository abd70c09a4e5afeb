// Which instructions compute the products that round their operands to bfloat16 (Gemm::rounds_operands).
#pragma once

#include <cstdint>
#include <string_view>

#include "autograd/core/bfloat16.h"

namespace maki::kernels {

enum class Bf16Unit : std::uint8_t {
  amx,       ///< AMX tiles
  pairs,     ///< AVX512_BF16: pairs of bfloat16 numbers; the same bits as AMX tiles
  matrices,  ///< BFMMLA of ARM64: 2 × 4 by 4 × 2 numbers, in an order of summation of its own
  floats,    ///< multiply-adds of float32 numbers: another order of summation, and rounding the operands saves no time
};

/// The unit that the target in use multiplies with: amx on the target amx; pairs on avx3, and matrices on neon, if the
/// CPU has fast instructions for them.
Bf16Unit bf16_unit();
/// The name of these instructions, "AVX512_BF16" or "BFMMLA", where the target does not imply them; else "". CPUs that
/// share the target but not this name compute other bits.
std::string_view bf16_instructions();

/// Rounds n numbers. If `streams` is true, y begins at a cache line and is stored past the caches; the caller then
/// calls hwy::FlushStream() before another thread reads it.
using RoundToBf16 = void (*)(std::int64_t n, const float* x, BFloat16* y, bool streams);
/// The function that rounds exactly as the products of bf16_unit() round their operands. Throws Error if MAKI_TARGET is
/// invalid.
RoundToBf16 bf16_rounding();

/// For tests: bf16_unit() returns `floats` on the targets avx3 and neon while `off` is true.
void turn_off_bf16_instructions(bool off);

}  // namespace maki::kernels
