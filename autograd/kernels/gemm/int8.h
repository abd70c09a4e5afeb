// Products whose B is a matrix of 8-bit numbers (core/int8_matrix.h): weights that are only read. The bits are those of
// gemm() with the matrix of floats that its elements stand for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "autograd/core/int8_matrix.h"
#include "autograd/kernels/gemm/gemm.h"

namespace maki::kernels {

/// Rounds weight [out, in] to 8 bits and writes the blocks of `matrix`, which has these sizes: within a block, the
/// largest number of a row by magnitude becomes 127 or -127, and the others the nearest multiple of a 127th of it
/// (below 1e-30, all become 0). Returns whether all numbers are finite; if not, the blocks are meaningless. Throws
/// Error if MAKI_TARGET is invalid.
bool round_to_int8(const float* weight, const Int8Matrix& matrix, Int8Block* blocks);

/// gemm_scratch_bytes() of a product with g.b.int8.
std::int64_t int8_scratch_bytes(const Gemm<float>& g);

/// gemm() of a product with g.b.int8. Requires: its sizes are positive, its scratch is large enough, and all else was
/// checked. Few rows read B from memory once and turn it into floats in registers; for more, slabs of B become packed
/// floats.
void int8_gemm(const Gemm<float>& g, std::span<std::byte> scratch);

}  // namespace maki::kernels
