// Kernels that choose between values by comparison and compute nothing, except to add to a sink that adds: clamp, and
// selection by a mask. T is float or double. No argument is checked (the ops do that), and nothing is thrown.
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"
#include "autograd/kernels/broadcast.h"

namespace maki::kernels {

/// y = low where x < low, high where x > high, else x (NaN stays NaN); x, y [n]. Requires here and below: low <= high.
template <class T>
void clamp_forward(std::int64_t n, const T* x, T low, T high, T* y);
/// dx = 0 where x < low or x > high, else dy (also where x equals a bound or is NaN); added if the sink adds.
template <class T>
void clamp_backward(std::int64_t n, const T* x, T low, T high, const T* dy, Sink<T> dx);

/// Whether the nonzero or the zero elements of a mask select.
enum class Where : std::uint8_t { nonzero, zero };
/// What select() does with elements of y that are not selected.
enum class Others : std::uint8_t { become_zero, stay };

/// y = x where the mask selects, added if the sink adds. The other elements become 0, or stay as they are; they stay in
/// any case if the sink adds. In the plan, a is the mask and b is x.
template <class T>
void select(const BroadcastPlan& plan, const std::int32_t* mask, Where selected, const T* x, Others others, Sink<T> y);

}  // namespace maki::kernels
