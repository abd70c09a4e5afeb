// Loops that measure the peak rates of a machine, with the instructions that the kernels use: multiply-adds per
// second and bytes per second. Each runs on the calling thread alone. All but amx_flop_per_round() throw Error if
// MAKI_TARGET is invalid (simd/target.h). T is float or double.
#pragma once

#include <cstdint>

namespace maki::kernels {

/// Floating-point operations of one round of run_fma_chains(): two for every lane of every chain.
template <class T>
std::int64_t fma_flop_per_round();
/// Runs `rounds` steps of independent chains x ← MulAdd(x, ½, ½), in registers alone. Returns the mean of their final
/// values: exactly 1 after 64 rounds or more (the chains start from small integers), and another number after a few.
template <class T>
double run_fma_chains(std::int64_t rounds);

/// Floating-point operations in float32 to which one round of run_amx_chains() corresponds.
std::int64_t amx_flop_per_round();
/// Runs `rounds` times the tile multiplications that a product of two 32 × 32 float32 matrices takes (six in bfloat16
/// per multiplication in float32), in tile registers alone. Returns the mean of the sums divided by its expected value:
/// exactly 1 for 1 to 2^21 rounds, NaN for none. Throws Error unless uses_amx().
double run_amx_chains(std::int64_t rounds);

/// Independent sums of pairs, or of matrices, in run_bf16_chains(), and the pairs in a vector. A multiplication of
/// pairs takes longer than a multiply-add: with 12 sums, a core of an AMD EPYC (Zen 5) reaches 479 GFLOP/s, with 16 516
/// (multiply-adds: 262).
inline constexpr int kPairChains = 16, kPairsInVector = 16;

/// Floating-point operations to which one round of run_bf16_chains() corresponds.
std::int64_t bf16_flop_per_round();
/// Runs `rounds` steps of what multiplies operands rounded to bfloat16 on the target in use (bf16_unit() in
/// gemm/bf16.h), in registers alone: tile multiplications, independent sums of pairs or matrices of
/// products, or run_fma_chains<float>(). Returns exactly 1 for 64 to 2^21 rounds, and up to 2^24 of pairs.
double run_bf16_chains(std::int64_t rounds);

/// y = x, both [n] and aligned to 64 bytes, with stores that bypass the caches, so that only the bytes that are counted
/// are moved (on targets without such stores, with usual ones). They must not overlap.
void stream_copy(std::int64_t n, const float* x, float* y);

/// The sum of x [n], aligned to 64 bytes, read in the order in which memory is fastest: eight streams, each prefetched.
/// Exact for integers whose partial sums, one for each lane of each stream, stay below 2^24.
double stream_sum(std::int64_t n, const float* x);

}  // namespace maki::kernels
