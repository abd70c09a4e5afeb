// Which instructions compute the products that round their operands to bfloat16 (Gemm::rounds_operands).
#pragma once

#include <cstdint>

namespace maki::kernels {

enum class Bf16Unit : std::uint8_t {
  amx,     ///< AMX tiles
  pairs,   ///< AVX512_BF16: pairs of bfloat16 numbers; the same bits as AMX tiles
  floats,  ///< multiply-adds of float32 numbers: another order of summation, and rounding the operands saves no time
};

/// The unit that the target in use multiplies with: amx on the target amx, pairs on avx3 if the CPU has fast
/// instructions for them.
Bf16Unit bf16_unit();

/// For tests: bf16_unit() never returns `pairs` while `off` is true.
void turn_off_bf16_pairs(bool off);

}  // namespace maki::kernels
