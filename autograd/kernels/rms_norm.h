// Root mean square normalization: y = x / sqrt(mean(x²) + eps) · weight over each row. Zhang and Sennrich 2019,
// arXiv:1910.07467, eq. 4; eps inside the root, as in LLaMA.
// T is float or double. No argument is checked; the only exception is Error if MAKI_TARGET is invalid (simd/target.h).
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

/// x, y [rows, cols]; weight [cols] or null; rrms [rows]: 1 / sqrt(mean(x²) + eps), which backward needs. The squares
/// are summed in double. A row of zeros gives NaN if eps is 0. A mean square that overflows double gives a row of NaN:
/// 1 / sqrt(Inf) would give zeros, which would hide that the numbers have diverged.
template <class T>
void rms_norm_forward(std::int64_t rows, std::int64_t cols, const T* x, const T* weight, double eps, T* y, T* rrms);

/// Elements of T that rms_norm_backward() needs as scratch if the gradient of weight is wanted; otherwise scratch may
/// be null.
std::int64_t rms_norm_backward_scratch(std::int64_t rows, std::int64_t cols);
/// With x̂ = x · rrms and g = dy · weight:
///   dx = rrms · (g − x̂ · mean(g · x̂)),  dweight = Σ_rows dy · x̂.
/// x, dy, dx [rows, cols]; weight, dweight [cols]; weight and either sink may be null. Sinks that add are added to.
template <class T>
void rms_norm_backward(std::int64_t rows, std::int64_t cols, const T* x, const T* weight, const T* rrms, const T* dy,
                       Sink<T> dx, Sink<T> dweight, T* scratch);

/// Rows of `width` columns, of which the first heads · head_size belong to heads.
struct NormedHeads {
  std::int64_t rows = 0, width = 0, heads = 0, head_size = 0;
  std::int64_t normalized() const { return heads * head_size; }
};
/// y = RMS norm of each head of each row, the mean being that over its head_size columns; columns beyond the heads are
/// copied. x, y, dy, dx [rows, width]; weight, which must not be null, and dweight [normalized()]; rrms [rows, heads].
template <class T>
void rms_norm_heads_forward(const NormedHeads& shape, const T* x, const T* weight, double eps, T* y, T* rrms);
/// Either sink may be null; `scratch` has rms_norm_backward_scratch(rows, normalized()) elements if dweight is not.
template <class T>
void rms_norm_heads_backward(const NormedHeads& shape, const T* x, const T* weight, const T* rrms, const T* dy,
                             Sink<T> dx, Sink<T> dweight, T* scratch);

}  // namespace maki::kernels
