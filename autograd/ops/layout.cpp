// Transposition, concatenation, slicing and gathering: copies, whose backward copies the gradient back.
#include "autograd/kernels/layout.h"

#include <array>
#include <utility>

#include "autograd/ops.h"
#include "autograd/ops/axes.h"
#include "autograd/ops/common.h"
#include "autograd/tape.h"

namespace maki {
namespace {

// The number of parts of concat() is limited because its closure keeps their widths in an array of fixed size (512
// bytes), so that recording allocates nothing.
constexpr std::size_t kMaxConcatParts = 64;

}  // namespace

Tensor transpose(const Tensor& x, int axis_a, int axis_b) {
  check_floating("transpose", x);
  const Shape& from = x.shape();
  const int first = std::min(from.normalize(axis_a), from.normalize(axis_b));
  const int second = std::max(from.normalize(axis_a), from.normalize(axis_b));
  Tensor y = empty(from.with(first, from[second]).with(second, from[first]), x.dtype());
  kernels::Transposition shape{.outer = product(from, 0, first),
                               .rows = from[first],
                               .middle = product(from, first + 1, second),
                               .cols = from[second],
                               .inner = product(from, second + 1, from.rank())};
  if (first == second) shape = {.inner = from.numel()};
  dispatch(x.dtype(), [&]<class T>() { kernels::transpose(shape, x.data<T>(), Sink<T>{y.data<T>(), false}); });
  return record("transpose", y, {x}, [shape, dtype = x.dtype()](Grads& g) {
    dispatch(dtype, [&]<class T>() {
      if (const Sink<T> dx = g.in<T>(0)) kernels::transpose(shape.inverse(), g.out<T>(), dx);
    });
  });
}

Tensor concat(std::span<const Tensor> parts, int axis) {
  check(!parts.empty() && parts.size() <= kMaxConcatParts, "concat: takes 1 to {} parts; got {}", kMaxConcatParts,
        parts.size());
  check_floating("concat", parts[0]);
  const Shape& first = parts[0].shape();
  const int along = first.normalize(axis);
  std::int64_t extent = 0;
  for (const Tensor& part : parts) {
    check_same_type("concat", parts[0], part);
    check(part.shape().rank() == first.rank() && part.shape().with(along, 0) == first.with(along, 0),
          "concat: all extents except that of axis {} must be equal; got {} and {}", along, first, part.shape());
    extent += part.shape()[along];
  }
  Tensor y = empty(first.with(along, extent), parts[0].dtype());
  const std::int64_t rows = product(first, 0, along), inner = product(first, along + 1, first.rank());
  const std::int64_t stride = extent * inner;

  std::array<std::int64_t, kMaxConcatParts> widths{};
  std::array<const Tensor*, kMaxConcatParts> inputs{};
  std::int64_t at = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    inputs[i] = &parts[i];
    widths[i] = parts[i].shape()[along] * inner;
    dispatch(y.dtype(), [&]<class T>() {
      kernels::copy_rows(rows, widths[i], parts[i].data<T>(), widths[i], Sink<T>{y.data<T>() + at, false}, stride);
    });
    at += widths[i];
  }
  Tensor* const outputs[] = {&y};
  record("concat", outputs, std::span<const Tensor* const>(inputs.data(), parts.size()),
         [widths, n = parts.size(), rows, stride, dtype = y.dtype()](Grads& g) {
           dispatch(dtype, [&]<class T>() {
             const T* dy = g.out<T>();
             for (std::size_t i = 0; i < n; dy += widths[i++]) {
               const Sink<T> dx = g.in<T>(static_cast<int>(i));
               if (dx) kernels::copy_rows(rows, widths[i], dy, stride, dx, widths[i]);
             }
           });
         });
  return y;
}
Tensor concat(std::initializer_list<Tensor> parts, int axis) {
  return concat(std::span<const Tensor>(parts.begin(), parts.size()), axis);
}

// Every part gets an axis of extent 1, by reshape, along which concat() joins them; that is also the recorded node.
Tensor stack(std::span<const Tensor> parts, int axis) {
  check(!parts.empty() && parts.size() <= kMaxConcatParts, "stack: takes 1 to {} parts; got {}", kMaxConcatParts,
        parts.size());
  const Shape& first = parts[0].shape();
  const int rank = first.rank(), at = axis < 0 ? axis + rank + 1 : axis;
  check(rank < Shape::kMaxRank && at >= 0 && at <= rank,
        "stack: the new axis must be in [{}, {}], and the parts may have at most {} axes; got axis {} for {}",
        -rank - 1, rank, Shape::kMaxRank - 1, axis, first);
  std::array<Tensor, kMaxConcatParts> rows;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    check_same_type("stack", parts[0], parts[i]);
    check(parts[i].shape() == first, "stack: all parts must have the same shape; got {} and {}", first,
          parts[i].shape());
    rows[i] = reshape(parts[i], with_inserted(first, at, 1));
  }
  return concat(std::span<const Tensor>(rows.data(), parts.size()), at);
}
Tensor stack(std::initializer_list<Tensor> parts, int axis) {
  return stack(std::span<const Tensor>(parts.begin(), parts.size()), axis);
}

Tensor slice(const Tensor& x, int axis, std::int64_t begin, std::int64_t end) {
  check_floating("slice", x);
  const Shape& from = x.shape();
  const int along = from.normalize(axis);
  const std::int64_t extent = from[along];
  check(0 <= begin && begin <= end && end <= extent,
        "slice: must have 0 <= begin <= end <= {}; got [{}, {}) of axis {} of {}", extent, begin, end, along, from);
  Tensor y = empty(from.with(along, end - begin), x.dtype());
  const std::int64_t rows = product(from, 0, along), inner = product(from, along + 1, from.rank());
  const std::int64_t width = (end - begin) * inner, before = begin * inner, stride = extent * inner;
  dispatch(x.dtype(), [&]<class T>() {
    kernels::copy_rows(rows, width, x.data<T>() + before, stride, Sink<T>{y.data<T>(), false}, width);
  });
  return record("slice", y, {x}, [rows, width, before, stride, dtype = x.dtype()](Grads& g) {
    dispatch(dtype, [&]<class T>() {
      const Sink<T> dx = g.in<T>(0);
      if (!dx) return;
      if (!dx.add) {  // elements outside the slice have gradient 0
        kernels::zero_rows(rows, before, dx.data, stride);
        kernels::zero_rows(rows, stride - before - width, dx.data + before + width, stride);
      }
      kernels::copy_rows(rows, width, g.out<T>(), width, Sink<T>{dx.data + before, dx.add}, stride);
    });
  });
}

Tensor gather(const Tensor& x, int axis, const Tensor& ids) {
  check_floating("gather", x);
  check_integers("gather", "ids", ids);
  const Shape &from = x.shape(), &to = ids.shape();
  const int at = from.normalize(axis);
  check(to.rank() == from.rank() && to.with(at, 0) == from.with(at, 0),
        "gather: ids must have the shape of x except along axis {}; got x {} and ids {}", at, from, to);
  if (const auto bad = first_outside(ids, from[at])) {
    fail("gather: ids must be in [0, {}), the extent of axis {} of x; got {} at index {} of ids of shape {}", from[at],
         at, ids.data<std::int32_t>()[*bad], *bad, to);
  }
  const kernels::AlongAxis shape = along(from, at);
  const std::int64_t count = to[at];
  Tensor y = empty(to, x.dtype());
  dispatch(x.dtype(), [&]<class T>() {
    kernels::gather_forward(shape, count, x.data<T>(), ids.data<std::int32_t>(), y.data<T>());
  });
  return record("gather", y, {x}, [shape, count, ids, dtype = x.dtype()](Grads& g) {
    dispatch(dtype, [&]<class T>() {
      const Sink<T> dx = g.in<T>(0);
      if (dx) kernels::gather_backward(shape, count, ids.data<std::int32_t>(), g.out<T>(), dx);
    });
  });
}

}  // namespace maki
