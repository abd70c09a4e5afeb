#include <algorithm>

#include "tests/ops/definitions.h"

namespace maki::tests::definitions {
namespace {

// x seen as [outer, extent, inner], of which the middle is one axis.
struct Axis {
  Axis(const Shape& shape, int axis) : extent(shape[axis]) {
    const int at = shape.normalize(axis);
    for (int i = 0; i < at; ++i) outer *= shape[i];
    for (int i = at + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
  std::int64_t index(std::int64_t before, std::int64_t at, std::int64_t after) const {
    return (before * extent + at) * inner + after;
  }

  std::int64_t outer = 1, extent = 1, inner = 1;
};

Shape without(const Shape& shape, int axis) {
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  extents.erase(extents.begin() + shape.normalize(axis));
  return Shape(std::span<const std::int64_t>(extents));
}

// result(value, index) of the first of the largest elements along an axis.
template <class Result>
Exact along_largest(const Exact& x, int axis, bool keep_axis, const Result& result) {
  const Axis a(x.shape(), axis);
  Exact y(keep_axis ? x.shape().with(axis, 1) : without(x.shape(), axis));
  for (std::int64_t before = 0; before < a.outer; ++before) {
    for (std::int64_t after = 0; after < a.inner; ++after) {
      std::int64_t which = 0;
      for (std::int64_t at = 1; at < a.extent; ++at) {
        if (x[a.index(before, at, after)].real() > x[a.index(before, which, after)].real()) which = at;
      }
      y[before * a.inner + after] = result(x[a.index(before, which, after)], which);
    }
  }
  return y;
}

}  // namespace

Exact sum(const Exact& x, std::span<const int> axes, bool keep_axes) {
  std::vector<int> summed;
  for (const int axis : axes) summed.push_back(x.shape().normalize(axis));
  for (int axis = 0; axes.empty() && axis < x.shape().rank(); ++axis) summed.push_back(axis);
  std::ranges::sort(summed, std::greater<>());  // from the last one, so that the numbers of the others stay
  Exact y = x;
  for (const int axis : summed) {
    const Axis a(y.shape(), axis);
    Exact sums(keep_axes ? y.shape().with(axis, 1) : without(y.shape(), axis));
    for (std::int64_t i = 0; i < y.numel(); ++i) sums[i / (a.extent * a.inner) * a.inner + i % a.inner] += y[i];
    y = sums;
  }
  return y;
}

Exact mean(const Exact& x, std::span<const int> axes, bool keep_axes) {
  Exact y = sum(x, axes, keep_axes);
  for (std::int64_t i = 0; i < y.numel(); ++i) y[i] /= static_cast<long double>(x.numel() / y.numel());
  return y;
}

Exact max(const Exact& x, int axis, bool keep_axis) {
  return along_largest(x, axis, keep_axis, [](const Number& value, std::int64_t) { return value; });
}

Exact argmax(const Exact& x, int axis, bool keep_axis) {
  return along_largest(x, axis, keep_axis,
                       [](const Number&, std::int64_t which) { return static_cast<long double>(which); });
}

Exact transpose(const Exact& x, int axis_a, int axis_b) {
  const Shape& shape = x.shape();
  const int a = shape.normalize(axis_a), b = shape.normalize(axis_b);
  Exact y(shape.with(a, shape[b]).with(b, shape[a]));
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    std::vector<std::int64_t> at(static_cast<std::size_t>(shape.rank()));
    std::int64_t rest = i, index = 0;
    for (int axis = shape.rank() - 1; axis >= 0; rest /= y.shape()[axis--]) {
      at[static_cast<std::size_t>(axis)] = rest % y.shape()[axis];
    }
    std::swap(at[static_cast<std::size_t>(a)], at[static_cast<std::size_t>(b)]);
    for (int axis = 0; axis < shape.rank(); ++axis) index = index * shape[axis] + at[static_cast<std::size_t>(axis)];
    y[i] = x[index];
  }
  return y;
}

Exact concat(std::span<const Exact> parts, int axis) {
  std::int64_t extent = 0;
  for (const Exact& part : parts) extent += part.shape()[axis];
  Exact y(parts[0].shape().with(axis, extent));
  const Axis to(y.shape(), axis);
  std::int64_t begin = 0;
  for (const Exact& part : parts) {
    const Axis from(part.shape(), axis);
    for (std::int64_t i = 0; i < part.numel(); ++i) {
      const std::int64_t row = i / from.inner;
      y[to.index(row / from.extent, begin + row % from.extent, i % from.inner)] = part[i];
    }
    begin += from.extent;
  }
  return y;
}

Exact stack(std::span<const Exact> parts, int axis) {
  const Shape& shape = parts[0].shape();
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  extents.insert(extents.begin() + (axis < 0 ? axis + shape.rank() + 1 : axis), 1);
  std::vector<Exact> with_axis;
  for (const Exact& part : parts) {
    with_axis.emplace_back(Shape(std::span<const std::int64_t>(extents)));
    for (std::int64_t i = 0; i < part.numel(); ++i) with_axis.back()[i] = part[i];
  }
  return concat(with_axis, axis);
}

Exact slice(const Exact& x, int axis, std::int64_t begin, std::int64_t end) {
  Exact y(x.shape().with(axis, end - begin));
  const Axis from(x.shape(), axis), to(y.shape(), axis);
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const std::int64_t row = i / to.inner;
    y[i] = x[from.index(row / to.extent, begin + row % to.extent, i % to.inner)];
  }
  return y;
}

Exact gather(const Exact& x, int axis, const Exact& ids) {
  Exact y(ids.shape());
  const Axis from(x.shape(), axis), to(y.shape(), axis);
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    y[i] = x[from.index(i / to.inner / to.extent, ids.integer(i), i % to.inner)];
  }
  return y;
}

}  // namespace maki::tests::definitions
