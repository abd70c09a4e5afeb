// layer_norm: y = (x − mean) / sqrt(var + eps) · weight + bias over each row, the variance being the biased one.
// Ba, Kiros and Hinton 2016, arXiv:1607.06450.
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

/// Numbers a row that forward saves for backward: the mean in two parts, mean = stats[0] + stats[1] (a float32 mean
/// alone is off by more than the spread of a nearly constant row), and 1 / sqrt(var + eps).
inline constexpr std::int64_t kLayerNormStats = 3;

/// x, y [rows, cols]; weight, bias [cols] or null; stats [rows, kLayerNormStats]. Two passes, mean and then variance.
/// A variance beyond the range of T gives NaN, not a row of zeros.
template <class T>
void layer_norm_forward(std::int64_t rows, std::int64_t cols, const T* x, const T* weight, const T* bias, double eps,
                        T* y, T* stats);

/// Elements of T that layer_norm_backward needs as scratch where a gradient of weight or bias is wanted.
std::int64_t layer_norm_backward_scratch(std::int64_t rows, std::int64_t cols);
/// With x̂ = (x − mean) · rstd and g = dy · weight:
///   dx = rstd · (g − mean(g) − x̂ · mean(g · x̂)),  dweight = Σ_rows dy · x̂,  dbias = Σ_rows dy.
/// x, dy, dx [rows, cols]; weight, dweight, dbias [cols]; any sink and weight may be null.
template <class T>
void layer_norm_backward(std::int64_t rows, std::int64_t cols, const T* x, const T* weight, const T* stats, const T* dy,
                         Sink<T> dx, Sink<T> dweight, Sink<T> dbias, T* scratch);

}  // namespace maki::kernels
