// Dropout: y = x · mask, where mask[i] is 0 if word i of a random stream is below ⌊p · 2³²⌋, else 1/(1 − p). Srivastava
// et al., "Dropout" (JMLR 2014), in the inverted form. The mask is a function of the stream and i alone, so backward
// draws it again and nothing is saved, and float32 and float64 drop the same elements. Dropped elements are multiplied
// by 0, not replaced by 0, so that NaN is not hidden.
// T is float or double. No argument is checked; the only exception is Error if MAKI_TARGET is invalid (simd/target.h).
#pragma once

#include <cstdint>

#include "autograd/core/philox.h"
#include "autograd/core/sink.h"

namespace maki::kernels {

/// y [n] = x [n] · mask, added if the sink adds; y may be x itself. Backward is the same function: dx = dy · mask.
/// Requires: 0 <= p < 1, which the op checks.
///
/// Thread safety: may be called from several threads at once.
template <class T>
void dropout(std::int64_t n, const T* x, double p, const RandomStream& stream, Sink<T> y);

}  // namespace maki::kernels
