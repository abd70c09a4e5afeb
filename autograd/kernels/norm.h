// Layer normalization: y = (x − mean) / sqrt(var + eps) · weight + bias over each row, with the biased variance.
// Ba, Kiros and Hinton 2016, arXiv:1607.06450.
// T is float or double. No argument is checked; the only exception is Error if MAKI_TARGET is invalid (simd/target.h).
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

/// Numbers per row that forward saves for backward: the mean in two parts, mean = stats[0] + stats[1] (the error of a
/// rounded mean alone can exceed the spread of a nearly constant row, and x − mean is exactly 0 in a constant one), and
/// rstd = 1 / sqrt(var + eps).
inline constexpr std::int64_t kLayerNormStats = 3;

/// x, y [rows, cols]; weight, bias [cols] or null; stats [rows, kLayerNormStats]. The variance is computed in a second
/// pass after the mean. If a sum of squared deviations overflows (in T over each 256 of them, in double over all), or
/// if a number of the row is not finite, the whole row is NaN, because 1 / sqrt(Inf) would give zeros. So is a constant
/// row if eps is 0.
template <class T>
void layer_norm_forward(std::int64_t rows, std::int64_t cols, const T* x, const T* weight, const T* bias, double eps,
                        T* y, T* stats);

/// Elements of T that layer_norm_backward() needs as scratch if a gradient of weight or bias is wanted; otherwise
/// scratch may be null.
std::int64_t layer_norm_backward_scratch(std::int64_t rows, std::int64_t cols);
/// With x̂ = (x − mean) · rstd and g = dy · weight:
///   dx = rstd · (g − mean(g) − x̂ · mean(g · x̂)),  dweight = Σ_rows dy · x̂,  dbias = Σ_rows dy.
/// x, dy, dx [rows, cols]; weight, dweight, dbias [cols]; weight and any sink may be null. Sinks that add are added to.
template <class T>
void layer_norm_backward(std::int64_t rows, std::int64_t cols, const T* x, const T* weight, const T* stats, const T* dy,
                         Sink<T> dx, Sink<T> dweight, Sink<T> dbias, T* scratch);

}  // namespace maki::kernels
