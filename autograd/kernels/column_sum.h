// Column sums of a matrix: the gradient of a bias.
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

/// sums[j] = Σ_i x[i, j] for x [rows, cols], rows `stride` apart. Each column is summed by blocks of 64 rows, the
/// blocks in order: threads share out columns, so no bit depends on them.
template <class T>
void column_sum(std::int64_t rows, std::int64_t cols, const T* x, std::int64_t stride, Sink<T> sums);

}  // namespace maki::kernels
