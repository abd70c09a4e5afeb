// Loops that measure a machine with the instructions that the kernels use: the most multiply-adds, and the most bytes.
// Each runs on the calling thread alone.
#pragma once

#include <cstdint>

namespace maki::kernels {

/// Floating-point operations of one round of multiply_add_chains: two for every lane of every chain.
template <class T>
std::int64_t multiply_add_flop();
/// So many rounds of independent chains x ← MulAdd(x, ½, ½), in registers alone. Returns the sum of their ends divided
/// by their number: exactly 1 after 64 rounds and more, whatever the chains began with.
template <class T>
double multiply_add_chains(std::int64_t rounds);

/// Floating-point operations of float32 that one round of tile_chains() stands for.
std::int64_t tile_flop();
/// Where uses_amx(): so many rounds of the multiplications of tiles that the product of two float32 matrices of 32 by
/// 32 takes, six of bfloat16 for one of float32, in tile registers alone. Returns the mean of the sums divided by what
/// they must be: exactly 1, for at most 2^21 rounds.
double tile_chains(std::int64_t rounds);

/// y = x, both [n] and aligned to 64 bytes, with stores that pass the caches by: what is counted is what moves.
void stream_copy(std::int64_t n, const float* x, float* y);

/// The sum of x [n], aligned to 64 bytes, in the order in which memory gives most: eight streams, each looking ahead.
/// Exact for integers whose partial sums, over every 128th of x, stay below 2^24.
double stream_sum(std::int64_t n, const float* x);

}  // namespace maki::kernels
