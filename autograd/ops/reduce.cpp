// Sums, means and maxima. Backward broadcasts the gradient along the axes that were summed, or sends it to the element
// that is the maximum.
#include "autograd/kernels/reduce.h"

#include <array>
#include <limits>

#include "autograd/kernels/along_axis.h"
#include "autograd/kernels/broadcast.h"
#include "autograd/ops.h"
#include "autograd/ops/axes.h"
#include "autograd/ops/common.h"
#include "autograd/tape.h"

namespace maki {
namespace {

// A bit mask: bit i is set if axis i is summed. An empty list means all axes.
std::uint32_t axes_to_sum(const char* name, const Shape& shape, std::span<const int> axes) {
  if (axes.empty()) return (1u << shape.rank()) - 1;
  std::uint32_t mask = 0;
  for (const int axis : axes) {
    const std::uint32_t bit = 1u << shape.normalize(axis);
    check((mask & bit) == 0, "{}: each axis may be listed only once; got {} twice for shape {}", name, axis, shape);
    mask |= bit;
  }
  return mask;
}

// The shape after summing: the summed axes are removed or, with `keep`, have extent 1.
Shape without(const Shape& shape, std::uint32_t summed, bool keep) {
  std::array<std::int64_t, Shape::kMaxRank> extents{};
  std::size_t rank = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool gone = (summed >> axis & 1) != 0;
    if (!gone || keep) extents[rank++] = gone ? 1 : shape[axis];
  }
  return Shape(std::span<const std::int64_t>(extents.data(), rank));
}

Tensor reduced(const char* name, const Tensor& x, std::uint32_t axes, bool keep_axes, double factor) {
  const Shape from = x.shape(), kept = without(from, axes, true);
  Tensor y = empty(without(from, axes, keep_axes), x.dtype());
  const kernels::ReductionPlan plan = kernels::plan_reduction(from, axes);
  Tensor scratch = empty({kernels::reduction_scratch(plan)}, DType::float64);
  dispatch(x.dtype(), [&]<class T>() {
    kernels::sum(plan, x.data<T>(), factor, scratch.data<double>(), Sink<T>{y.data<T>(), false});
  });
  return record(name, y, {x}, [from, kept, factor, dtype = x.dtype()](Grads& g) {
    dispatch(dtype, [&]<class T>() {
      const T share = static_cast<T>(factor);
      const kernels::BroadcastPlan stretch = kernels::plan_broadcast(kept, Shape{}, from);
      if (const Sink<T> dx = g.in<T>(0)) kernels::binary(kernels::BinaryOp::mul, stretch, g.out<T>(), &share, dx);
    });
  });
}

}  // namespace

Tensor sum(const Tensor& x, std::span<const int> axes, bool keep_axes) {
  check_floating("sum", x);
  return reduced("sum", x, axes_to_sum("sum", x.shape(), axes), keep_axes, 1);
}
Tensor sum(const Tensor& x, std::initializer_list<int> axes, bool keep_axes) {
  return sum(x, std::span<const int>(axes.begin(), axes.size()), keep_axes);
}

Tensor mean(const Tensor& x, std::span<const int> axes, bool keep_axes) {
  check_floating("mean", x);
  const std::uint32_t mask = axes_to_sum("mean", x.shape(), axes);
  std::int64_t count = 1;
  for (int axis = 0; axis < x.shape().rank(); ++axis) {
    if ((mask >> axis & 1) != 0) count *= x.shape()[axis];
  }
  return reduced("mean", x, mask, keep_axes, 1 / static_cast<double>(count));
}
Tensor mean(const Tensor& x, std::initializer_list<int> axes, bool keep_axes) {
  return mean(x, std::span<const int>(axes.begin(), axes.size()), keep_axes);
}

namespace {

// The indices of the maxima along an axis, int32, in the shape of x without the axis or, with keep_axis, with extent 1.
Tensor places_of_maxima(const char* name, const Tensor& x, int axis, bool keep_axis) {
  check_floating(name, x);
  const Shape& from = x.shape();
  const int at = from.normalize(axis);
  check(from[at] >= 1 && from[at] <= std::numeric_limits<std::int32_t>::max(),
        "{}: the axis must have 1 to {} elements; got axis {} of {}", name, std::numeric_limits<std::int32_t>::max(),
        axis, from);
  Tensor places = empty(without(from, 1u << at, keep_axis), DType::int32);
  dispatch(x.dtype(), [&]<class T>() { kernels::argmax(along(from, at), x.data<T>(), places.data<std::int32_t>()); });
  return places;
}

}  // namespace

Tensor argmax(const Tensor& x, int axis, bool keep_axis) { return places_of_maxima("argmax", x, axis, keep_axis); }

Tensor max(const Tensor& x, int axis, bool keep_axis) {
  const Tensor places = places_of_maxima("max", x, axis, keep_axis);
  const kernels::AlongAxis shape = along(x.shape(), x.shape().normalize(axis));
  Tensor y = empty(places.shape(), x.dtype());
  dispatch(x.dtype(), [&]<class T>() {
    kernels::gather_forward(shape, 1, x.data<T>(), places.data<std::int32_t>(), y.data<T>());
  });
  return record("max", y, {x}, [shape, places, dtype = x.dtype()](Grads& g) {
    dispatch(dtype, [&]<class T>() {
      const Sink<T> dx = g.in<T>(0);
      if (dx) kernels::gather_backward(shape, 1, places.data<std::int32_t>(), g.out<T>(), dx);
    });
  });
}

}  // namespace maki
