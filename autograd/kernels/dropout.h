// Dropout: y = x · mask, mask[i] = 0 where word i of a random stream is below p · 2³², else 1/(1 − p). Srivastava et
// al., "Dropout" (JMLR 2014), in the inverted form. The mask is a function of the stream and i alone: the backward
// draws it again and nothing is saved; float32 and float64 drop the same elements. Multiplied, not selected: NaN shows.
#pragma once

#include <cstdint>

#include "autograd/core/philox.h"
#include "autograd/core/sink.h"

namespace maki::kernels {

/// y = x · mask; x, y [n]. The backward is the same with dy for x. 0 <= p < 1.
template <class T>
void dropout(std::int64_t n, const T* x, double p, const RandomStream& stream, Sink<T> y);

}  // namespace maki::kernels
