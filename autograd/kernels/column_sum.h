// Column sums of a matrix: the gradient of a bias.
// T is float or double. No argument is checked; the only exception is Error if MAKI_TARGET is invalid (simd/target.h).
#pragma once

#include <cstdint>

#include "autograd/core/bfloat16.h"
#include "autograd/core/sink.h"

namespace maki::kernels {

/// sums[j] = Σ_i x[i, j] for x [rows, cols] whose rows are `stride` elements apart; added if the sink adds. Each column
/// is summed in T, in blocks of 256 rows, which are then added in order; that bounds the rounding error. The columns
/// are divided among the threads, so no bit depends on the number of threads.
template <class T>
void column_sum(std::int64_t rows, std::int64_t cols, const T* x, std::int64_t stride, Sink<T> sums);

/// column_sum() of x rounded to bfloat16 and added in float32: the gradient of the bias of a product that rounds its
/// operands, as if the bias were the weights of an input that is always 1. The second form gets rounded numbers.
void rounded_column_sum(std::int64_t rows, std::int64_t cols, const float* x, std::int64_t stride, Sink<float> sums);
void rounded_column_sum(std::int64_t rows, std::int64_t cols, const BFloat16* x, std::int64_t stride, Sink<float> sums);

}  // namespace maki::kernels
