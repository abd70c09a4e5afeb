// Kernels that work along one axis: the index of the largest element, and gathering by index. An array is seen as
// [outer, extent, inner], with `extent` the axis and `inner` consecutive in memory. The lines along the axis (equal o
// and i below) are divided among the threads, so no bit depends on the number of threads.
// T is float or double. No argument is checked (the ops do that), and nothing is thrown.
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

/// The elements before the axis, along it and after it.
struct AlongAxis {
  std::int64_t outer = 1, extent = 1, inner = 1;
};

/// places[o, i] = the k at which x[o, k, i] is largest: the first of equal ones, or the first NaN if there is one.
/// Requires: 1 <= extent < 2^31.
template <class T>
void argmax(const AlongAxis& shape, const T* x, std::int32_t* places);

/// y[o, j, i] = x[o, ids[o, j, i], i] for j < count: x has the shape given by `shape`, ids and y are [outer, count,
/// inner], and ids are in [0, extent).
template <class T>
void gather_forward(const AlongAxis& shape, std::int64_t count, const T* x, const std::int32_t* ids, T* y);
/// dx[o, k, i] = Σ dy[o, j, i] over all j with ids[o, j, i] = k, 0 if there is none. The terms are added in the order
/// of j, to what dx contains if the sink adds, else to 0.
template <class T>
void gather_backward(const AlongAxis& shape, std::int64_t count, const std::int32_t* ids, const T* dy, Sink<T> dx);

}  // namespace maki::kernels
