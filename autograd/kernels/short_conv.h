// A short convolution over the tokens of a sequence, separately for each column ("depthwise").
// T is float or double. No argument is checked; the only exception is Error if MAKI_TARGET is invalid (simd/target.h).
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

/// `taps` is K >= 1, the number of weights per column; `ahead` is A < K, how many tokens after its own a token sees;
/// `before` is m, the number of known tokens before the first one, at most K − 1, and 0 unless A is 0.
struct ShortConvShape {
  std::int64_t batch = 0, tokens = 0, width = 0, taps = 0, ahead = 0, before = 0;
};

/// y_t = Σ_k weight_k · x_{t+A−k} over the k in [0, K) with −m <= t + A − k < tokens, in ascending order. If A is 0, a
/// sequence that is computed in several calls therefore gets the same bits as in one call, if each is given the last K
/// − 1 tokens before it, or all if there are fewer. y must not overlap x. x, y [batch, tokens, width], weight [K,
/// width], before [batch, m, width] (x_{−m} … x_{−1}), null if m is 0.
template <class T>
void short_conv_forward(const ShortConvShape& shape, const T* x, const T* before, const T* weight, T* y);

/// Elements of T that short_conv_backward() needs as scratch if the gradient of weight is wanted; otherwise scratch
/// may be null.
std::int64_t short_conv_backward_scratch(const ShortConvShape& shape);
/// dx_t = Σ_k weight_k · dy_{t+k−A} and dweight_k = Σ_{b,t} dy_t · x_{t+A−k} over the tokens that the sequence has, in
/// each sequence separately. shape.before is ignored: tokens before the first one (m > 0) occur only in generation,
/// which has no backward. dx must overlap neither x nor dy. Either sink may be null. Sinks that add are added to. No
/// bit depends on the number of threads.
template <class T>
void short_conv_backward(const ShortConvShape& shape, const T* x, const T* weight, const T* dy, Sink<T> dx,
                         Sink<T> dweight, T* scratch);

}  // namespace maki::kernels
